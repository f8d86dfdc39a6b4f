// After a round's last update the new central model becomes the weights (local_sgd and its kin): the next gradient
// waits. An iteration is a step, because rounds may be long.
#pragma once

#include "scheduler/rounds/averaged_round.h"

namespace arbalest::scheduler {

class AssignedRound final : public AveragedRound {
 public:
  AssignedRound(const sma::Options& options, const RoundContext& context) : AveragedRound(options, context) {}

  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  bool is_between_rounds() const override { return steps_left_ == 0; }
  // Within a round the model is the replicas' mean.
  std::optional<sma::AveragingTicket> gather() override;
  const float* model(std::size_t pool) const override {
    return is_between_rounds() ? central().present(pool) : central().mean(pool);
  }
  void save_position(TrainingState& state) const override;
  void restore_position(const TrainingState& state) override;

 private:
  const float* hidden_central() const override { return is_between_rounds() ? nullptr : central().present(0); }
  void assign();

  int steps_left_ = 0;  // in the present round
};

}  // namespace arbalest::scheduler
