#include "scheduler/rounds/assigned_round.h"

#include "scheduler/rounds/gather_mean.h"

namespace arbalest::scheduler {

using learners::OptimizerState;

IterationEnd AssignedRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  const engine::StepParameters step = clock().step();
  if (steps_left_ == 0) {
    const auto half_an_epoch = static_cast<int>(clock().batches_per_epoch() / (2 * learners()));
    steps_left_ = options().period_at(static_cast<double>(step.learning_rate), half_an_epoch);
  }
  enqueue_steps(ring, 1, step);
  if (--steps_left_ > 0) return {};
  average(replicas().record(), step.learning_rate);
  assign();
  return {.rounds = 1, .averaging = central().ticket()};
}

void AssignedRound::assign() {
  const bool averages_state = options().local_state == sma::LocalState::kAverage;
  if (averages_state) central().average_state();
  const std::span<const engine::Event> ready = central().record();
  replicas().assign(central(), ready,
                    options().local_state == sma::LocalState::kZero ? OptimizerState::kZero : OptimizerState::kKeep);
  if (!averages_state) return;
  for (std::size_t j = 0; j < replicas().size(); ++j) {
    const std::size_t p = replicas().pool_of(j);
    for (std::size_t slot = 0; slot < replicas()[j].state().size(); ++slot) {
      replicas()[j].assign_state(slot, central().state(p, slot), ready[p]);
    }
  }
}

std::optional<sma::AveragingTicket> AssignedRound::gather() {
  if (is_between_rounds()) return std::nullopt;
  central().wait_for(replicas().record(), "wait for the replicas to be read");
  return gather_mean(
      replicas(), central(), [&](std::size_t p) { return central().present(p); },
      [&](std::size_t p) { return central().mean(p); });
}

void AssignedRound::save_position(TrainingState& state) const {
  AveragedRound::save_position(state);
  state.steps_left = steps_left_;
}

void AssignedRound::restore_position(const TrainingState& state) {
  AveragedRound::restore_position(state);
  steps_left_ = state.steps_left;
}

}  // namespace arbalest::scheduler
