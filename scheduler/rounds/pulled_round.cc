#include "scheduler/rounds/pulled_round.h"

namespace arbalest::scheduler {

learners::UpdateSources PulledRound::sources(std::size_t pool) {
  return {.references = {central().central(pool, 0), central().central(pool, 1)}};
}

IterationEnd PulledRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  const engine::StepParameters local = clock().step();
  enqueue_steps(ring, options().period - 1, local);
  engine::StepParameters pulled = local;
  pulled.pull = options().pull_for(learners());
  pulled.reference = static_cast<std::uint32_t>(central().parity());
  const Replicas::EventsByPool ready = replicas().record();
  enqueue_gradients(ring, pulled);
  const std::span<const engine::Event> read = average(ready, local.learning_rate);
  replicas().enqueue_updates(ring, read);
  return {.rounds = 1, .averaging = central().ticket()};
}

void PulledRound::restart_at_drop() {
  replicas().assign(central(), restart_central(), learners::OptimizerState::kZero);
  forget_learning_rate();
}

}  // namespace arbalest::scheduler
