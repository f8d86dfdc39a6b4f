#include "scheduler/rounds/round.h"

#include <vector>

#include "engine/passes/moving_average.h"

namespace arbalest::scheduler {

void Round::enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step, bool has_parts) {
  replicas().enqueue_gradients(ring, step, has_parts);
  clock().count(static_cast<std::uint64_t>(learners()));
}

void Round::enqueue_steps(dataflow::BatchRing& ring, int steps, const engine::StepParameters& each) {
  for (int step = 0; step < steps; ++step) {
    enqueue_gradients(ring, each);
    replicas().enqueue_updates(ring);
  }
}

engine::Event Round::read_model(std::size_t pool, float* average, float weight, engine::BFloat16* rounded) {
  const dataflow::ParameterLayout& layout = replicas().pool(pool).training_plan().parameters();
  const std::int64_t elements = layout.moving_elements();
  const std::int64_t frozen = layout.frozen_elements();
  engine::Stream& stream = model_stream(pool);
  stream.enqueue(engine::MovingAverage{model(pool), average, weight, elements}, "moving average");
  if (frozen > 0) {
    stream.copy(average + elements, frozen_source(pool) + elements, static_cast<std::size_t>(frozen) * sizeof(float),
                "frozen parameters");
  }
  if (rounded != nullptr) {
    stream.enqueue(engine::RoundWeights{average, rounded, elements + frozen}, "round moving average");
  }
  return stream.record();
}

std::span<const engine::Event> Round::restart_central() {
  std::vector<const float*> models;
  for (std::size_t p = 0; p < replicas().pools().size(); ++p) models.push_back(model(p));
  central().wait_for(replicas().record(), "wait for updated replicas");
  return central().restart(models);
}

bool Round::measure_gradients() {
  // A measurement reads every gradient once more and makes learners wait for it, so only one of kEvery iterations is
  // measured. The single learner of a process needs two measurements in a row.
  constexpr std::uint64_t kEvery = 4;
  const bool is_due = iterations_++ % kEvery < (replicas().size() == 1 ? 2U : 1U);
  sma::GradientVariance* variance = synchronizer().variance();
  return variance != nullptr && is_due && measure(*variance);
}

bool Round::measure(sma::GradientVariance& variance) {
  central().wait_for(replicas().record(), "wait for gradients to measure");
  const bool is_measured = variance.enqueue(central().streams());
  replicas().wait_for(central().record(), "wait for the gradients to be measured");
  return is_measured;
}

void Round::save_position(TrainingState& state) const {
  state.steps_left = 0;
  state.last_learning_rate = 0.0F;
}

void Round::save(TrainingState& state) const {
  save_position(state);
  state.central.clear();
  state.central_before.clear();
  state.velocity.clear();
}

}  // namespace arbalest::scheduler
