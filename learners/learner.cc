#include "learners/learner.h"

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/waiting.h"
#include "learners/batch_copy.h"
#include "learners/step_memory.h"

namespace arbalest::learners {

using engine::StepParameters;
using engine::StepResult;

namespace {

std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }
std::size_t slots_bytes(std::size_t slots, std::size_t each) { return slots * each; }

// Bytes of the replica's vectors: its weights, one vector of the optimizer's state, and running statistics.
std::size_t vector_bytes(const dataflow::Plan& plan) { return bytes_of(plan.parameters().elements()); }
std::size_t state_bytes(const dataflow::Plan& plan) { return bytes_of(plan.parameters().trainable_elements()); }
std::size_t statistics_bytes(const dataflow::Plan& plan) { return bytes_of(plan.parameters().statistic_elements()); }

dataflow::PlanBuffers own_buffers(const LearnerMemory& memory) {
  return {memory.replica.weights, memory.replica.gradient, memory.arena, reinterpret_cast<StepParameters*>(memory.step),
          memory.result,          memory.replica.rounded};
}

}  // namespace

Learner::Learner(engine::Device& device, engine::Stream& stream, const dataflow::Plan& training,
                 const dataflow::Plan& inference, const LearnerMemory& memory, const LearnerOptions& options)
    : options_(options),
      stream_(stream),
      training_(training),
      inference_(inference),
      memory_(memory),
      step_bytes_(step_bytes(std::max(training.batch(), inference.batch()))),
      done_(static_cast<std::size_t>(options.result_slots)) {
  const std::size_t slots = done_.size();
  step_ring_ = device.allocate_host(slots_bytes(slots, step_bytes_));
  result_ring_ = device.allocate_host(slots_bytes(slots, sizeof(StepResult)));
  dataflow::PlanBuffers evaluation = own_buffers(memory_);
  evaluation.weights = memory.shared.evaluation_weights;
  evaluation.low_precision_weights = memory.shared.rounded_evaluation_weights;
  evaluation.gradient = nullptr;
  evaluation_graph_ = record_evaluation(evaluation);
  if (options_.evaluates_own_weights) {
    dataflow::PlanBuffers own = own_buffers(memory_);
    own.gradient = nullptr;
    own_evaluation_graph_ = record_evaluation(own);
  }

  if (!options.measures_statistics || statistics_bytes(training_) == 0) return;
  statistics_ring_ = device.allocate_host(slots_bytes(slots, statistics_bytes(training_)));
  evaluation.gradient = memory_.replica.gradient;
  statistics_graph_ = record_training_forward(evaluation);
}

std::unique_ptr<engine::TaskGraph> Learner::record_training_forward(const dataflow::PlanBuffers& buffers) {
  stream_.begin_recording();
  enqueue_gather(stream_, training_, options_.training_data, memory_.step, memory_.arena);
  training_.forward(stream_, buffers);
  return stream_.end_recording();
}

std::unique_ptr<engine::TaskGraph> Learner::record_evaluation(const dataflow::PlanBuffers& buffers) {
  stream_.begin_recording();
  enqueue_gather(stream_, inference_, options_.evaluation_data, memory_.step, memory_.arena);
  inference_.forward(stream_, buffers);
  return stream_.end_recording();
}

// The previous task in this slot must have ended.
void Learner::check_slot() const { ARBALEST_CHECK(done_[slot()].is_complete()); }

void Learner::copy_in(const dataflow::Plan& plan, const dataflow::CachedData* data, const dataflow::Batch& batch,
                      const StepParameters* parameters, const char* label) {
  std::byte* step = step_ring_.as<std::byte>() + slots_bytes(slot(), step_bytes_);
  if (parameters != nullptr) std::memcpy(step, parameters, sizeof(StepParameters));
  ARBALEST_CHECK(data == nullptr || batch.indices != nullptr);
  if (data != nullptr) std::copy_n(batch.indices, plan.batch(), indices_in(step));
  const std::size_t begin = parameters != nullptr ? 0 : sizeof(StepParameters);
  const std::size_t end = data != nullptr ? step_bytes(plan.batch()) : sizeof(StepParameters);
  if (begin < end) stream_.fetch(memory_.step + begin, step + begin, end - begin, label);
  if (data == nullptr) copy_batch(stream_, plan, batch, memory_.arena);
}

void Learner::finish(Ticket& ticket) {
  StepResult& result = result_ring_.as<StepResult>()[slot()];
  ticket.result = &result;
  ticket.done = stream_.deliver(&result, memory_.result, sizeof(StepResult), "result");
  done_[slot()] = ticket.done;
  ++tasks_;
}

Ticket Learner::evaluate(const dataflow::Batch& batch, const engine::Event& weights_ready) {
  stream_.begin_task(batch.number, engine::WorkPhase::kEvaluation);
  stream_.wait(weights_ready, "wait for the central model's copy");
  return evaluate(*evaluation_graph_, batch);
}

Ticket Learner::evaluate_own_weights(const dataflow::Batch& batch) {
  ARBALEST_CHECK(own_evaluation_graph_ != nullptr);
  return evaluate(*own_evaluation_graph_, batch);
}

Ticket Learner::evaluate(const engine::TaskGraph& graph, const dataflow::Batch& batch) {
  check_slot();
  stream_.begin_task(batch.number, engine::WorkPhase::kEvaluation);
  copy_in(inference_, options_.evaluation_data, batch, nullptr, "indices");
  Ticket ticket{.task = batch.number, .examples = batch.examples};
  stream_.launch(graph, "evaluate");
  finish(ticket);
  return ticket;
}

Ticket Learner::training_loss(const dataflow::Batch& batch, const StepParameters& parameters) {
  if (training_loss_graph_ == nullptr) training_loss_graph_ = record_training_forward(own_buffers(memory_));
  check_slot();
  stream_.begin_task(batch.number, engine::WorkPhase::kEvaluation);
  copy_in(training_, options_.training_data, batch, &parameters, "parameters for the loss");
  Ticket ticket{.task = batch.number, .examples = batch.examples};
  stream_.launch(*training_loss_graph_, "training loss");
  finish(ticket);
  return ticket;
}

Ticket Learner::measure_statistics(const dataflow::Batch& batch, const StepParameters& parameters,
                                   const engine::Event& weights_ready) {
  ARBALEST_CHECK(statistics_graph_ != nullptr);
  check_slot();
  stream_.begin_task(batch.number, engine::WorkPhase::kStatistics);
  stream_.wait(weights_ready, "wait for the central model's copy");
  copy_in(training_, options_.training_data, batch, &parameters, "parameters for statistics");
  Ticket ticket{.task = batch.number, .examples = batch.examples};
  stream_.launch(*statistics_graph_, "statistics");
  auto* statistics = statistics_ring_.as<std::byte>() + slots_bytes(slot(), statistics_bytes(training_));
  stream_.copy(statistics, memory_.replica.gradient + training_.parameters().trainable_elements(),
               statistics_bytes(training_), "statistics of the mini-batch");
  ticket.statistics = reinterpret_cast<const float*>(statistics);
  finish(ticket);
  return ticket;
}

void Learner::weights_were_set() {
  if (memory_.replica.rounded == nullptr) return;
  round_weights(stream_, training_.parameters(), memory_.replica);
  engine::wait_for(stream_);
}

engine::Event Learner::assign(const float* weights, const engine::Event& ready, OptimizerState state) {
  stream_.wait(ready, "wait for new weights");
  stream_.copy(memory_.replica.weights, weights, vector_bytes(training_), "assign weights");
  round_weights(stream_, training_.parameters(), memory_.replica);
  if (state == OptimizerState::kZero) zero_state();
  return stream_.record();
}

void Learner::zero_state() {
  for (const StateSlot& slot : memory_.replica.state) {
    stream_.fill_zero(slot.values, state_bytes(training_), "restart optimizer state");
  }
  steps_ = 0;
}

void Learner::assign_state(std::size_t slot, const float* values, const engine::Event& ready) {
  stream_.wait(ready, "wait for new optimizer state");
  stream_.copy(memory_.replica.state[slot].values, values, state_bytes(training_), "assign optimizer state");
}

}  // namespace arbalest::learners
