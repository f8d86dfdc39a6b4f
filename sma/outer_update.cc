#include "sma/outer_update.h"

namespace arbalest::sma {

std::span<const engine::Event> OuterUpdate::enqueue(CentralModel& central,
                                                    std::span<const std::vector<engine::Event>> ready,
                                                    float learning_rate) {
  central.wait_for(ready, "wait for updated replicas");
  float momentum = options_.momentum_for(learners_);
  if (options_.scheme == Scheme::kSlowMo && last_learning_rate_ > 0.0F) momentum *= learning_rate / last_learning_rate_;
  last_learning_rate_ = learning_rate;
  return central.average(options_.step_for(learners_), momentum, options_.nesterov);
}

}  // namespace arbalest::sma
