// The outer update of the central model, for the schemes that average weights (sma/options.h).
#pragma once

#include <span>
#include <vector>

#include "sma/central_model.h"
#include "sma/options.h"

namespace arbalest::sma {

class OuterUpdate {
 public:
  // `learners`: of all processes. `options` must outlive it.
  OuterUpdate(const Options& options, int learners) : options_(options), learners_(learners) {}

  // Enqueues one update of z on the averaging streams, which waits for ready[d][j], after which the weights of replica
  // j of device d may be read. learning_rate: gamma of the round's last step, for SlowMo. Returns by device the event
  // after which the replicas' weights may change; z is complete later (CentralModel::record). Does not block the host.
  std::span<const engine::Event> enqueue(CentralModel& central, std::span<const std::vector<engine::Event>> ready,
                                         float learning_rate);

  // The learning rate at the previous update, 0 if there was none: SlowMo's momentum depends on it.
  float last_learning_rate() const noexcept { return last_learning_rate_; }
  void continue_from(float last_learning_rate) noexcept { last_learning_rate_ = last_learning_rate; }

 private:
  const Options& options_;
  int learners_;
  float last_learning_rate_ = 0.0F;
};

}  // namespace arbalest::sma
