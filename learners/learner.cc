#include "learners/learner.h"

#include <algorithm>

#include "engine/error.h"

namespace arbalest::learners {

using engine::StepParameters;
using engine::StepResult;

namespace {

std::size_t slots_bytes(int slots, std::size_t each) { return static_cast<std::size_t>(slots) * each; }

}  // namespace

Learner::Learner(engine::Device& device, const dataflow::Plan& training, const dataflow::Plan& inference,
                 const LearnerOptions& options)
    : options_(options),
      training_(training),
      inference_(inference),
      replica_(device, training.parameters().elements()),
      arena_(device.allocate(std::max(training.arena_bytes(), inference.arena_bytes()))),
      step_(device.allocate(sizeof(StepParameters))),
      result_(device.allocate(sizeof(StepResult))),
      parameters_ring_(device.allocate_host(slots_bytes(options.result_slots, sizeof(StepParameters)))),
      result_ring_(device.allocate_host(slots_bytes(options.result_slots, sizeof(StepResult)))),
      stream_(device.create_stream({.name = fmt::format("learner {}", options.number),
                                    .threads = options.threads,
                                    .first_core = options.first_core})) {
  const dataflow::PlanBuffers buffers{replica_.weights(), replica_.gradient(), arena_.as<std::byte>(),
                                      step_.as<StepParameters>(), result_.as<StepResult>()};
  stream_->begin_recording();
  training_.forward(*stream_, buffers);
  training_.backward(*stream_, buffers);
  gradient_graph_ = stream_->end_recording();

  stream_->begin_recording();
  stream_->enqueue(engine::SgdUpdate{.weights = replica_.weights(),
                                     .momentum = replica_.momentum(),
                                     .gradient = replica_.gradient(),
                                     .central = {options_.central[0], options_.central[1]},
                                     .ranges = training_.parameters().update_ranges(),
                                     .momentum_factor = options_.momentum,
                                     .weight_decay = options_.weight_decay,
                                     .step = step_.as<StepParameters>(),
                                     .non_finite = &result_.as<StepResult>()->non_finite},
                   "update");
  update_graph_ = stream_->end_recording();

  dataflow::PlanBuffers evaluation = buffers;
  evaluation.weights = options_.evaluation_weights;
  evaluation.gradient = nullptr;
  stream_->begin_recording();
  inference_.forward(*stream_, evaluation);
  evaluation_graph_ = stream_->end_recording();
}

StepParameters& Learner::parameters_slot(std::uint64_t n) const {
  return parameters_ring_.as<StepParameters>()[n % static_cast<std::uint64_t>(options_.result_slots)];
}

StepResult& Learner::result_slot(std::uint64_t n) const {
  return result_ring_.as<StepResult>()[n % static_cast<std::uint64_t>(options_.result_slots)];
}

void Learner::copy_in(const dataflow::Plan& plan, const dataflow::Batch& batch) {
  auto* arena = arena_.as<std::byte>();
  stream_->copy(plan.images(arena), batch.images, plan.tensor_bytes(dataflow::Graph::kImage), "images");
  stream_->copy(plan.labels(arena), batch.labels, plan.tensor_bytes(dataflow::Graph::kLabel), "labels");
}

void Learner::finish(Ticket& ticket) {
  StepResult& result = result_slot(tasks_++);
  stream_->copy(&result, result_.data(), sizeof(StepResult), "result");
  ticket.result = &result;
  ticket.done = stream_->record();
}

Ticket Learner::gradient(const dataflow::Batch& batch, const StepParameters& parameters) {
  StepParameters& slot = parameters_slot(tasks_);
  slot = parameters;
  stream_->copy(step_.data(), &slot, sizeof(StepParameters), "parameters");
  copy_in(training_, batch);
  const Ticket ticket{options_.number, batch.number, batch.examples, {}, nullptr};
  stream_->launch(*gradient_graph_, "gradient");
  return ticket;
}

void Learner::update(Ticket& ticket, const engine::Event& after) {
  stream_->wait(after, "wait for averaging's read");
  stream_->launch(*update_graph_, "update");
  finish(ticket);
}

Ticket Learner::evaluate(const dataflow::Batch& batch, const engine::Event& weights_ready) {
  stream_->wait(weights_ready, "wait for the central model's copy");
  copy_in(inference_, batch);
  Ticket ticket{options_.number, batch.number, batch.examples, {}, nullptr};
  stream_->launch(*evaluation_graph_, "evaluate");
  finish(ticket);
  return ticket;
}

engine::Event Learner::copy_weights(float* target) {
  stream_->copy(target, replica_.weights(), vector_bytes(), "copy weights");
  return stream_->record();
}

std::size_t Learner::vector_bytes() const {
  return static_cast<std::size_t>(training_.parameters().elements()) * sizeof(float);
}

void Learner::restart(const float* central, const engine::Event& ready) {
  stream_->wait(ready, "wait for the restart");
  stream_->copy(replica_.weights(), central, vector_bytes(), "restart weights");
  stream_->fill_zero(replica_.momentum(), vector_bytes(), "restart momentum");
}

}  // namespace arbalest::learners
