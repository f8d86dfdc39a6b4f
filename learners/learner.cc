#include "learners/learner.h"

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/waiting.h"
#include "learners/batch_copy.h"

namespace arbalest::learners {

using engine::StepParameters;
using engine::StepResult;

namespace {

std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }
std::size_t slots_bytes(int slots, std::size_t each) { return static_cast<std::size_t>(slots) * each; }
std::size_t step_bytes(std::int64_t batch) {
  static_assert(sizeof(StepParameters) % alignof(std::int64_t) == 0);
  return sizeof(StepParameters) + static_cast<std::size_t>(batch) * sizeof(std::int64_t);
}
std::int64_t* indices_in(std::byte* step) { return reinterpret_cast<std::int64_t*>(step + sizeof(StepParameters)); }

// Training and evaluation take turns, so they share the arena.
std::size_t arena_bytes(const dataflow::Plan& training, const dataflow::Plan& inference) {
  return std::max(training.arena_bytes(), inference.arena_bytes());
}
// Bytes of the replica's vectors: its weights, one vector of the optimizer's state, and running statistics.
std::size_t vector_bytes(const dataflow::Plan& plan) { return bytes_of(plan.parameters().elements()); }
std::size_t state_bytes(const dataflow::Plan& plan) { return bytes_of(plan.parameters().trainable_elements()); }
std::size_t statistics_bytes(const dataflow::Plan& plan) { return bytes_of(plan.parameters().statistic_elements()); }
std::int64_t largest_batch(const dataflow::Plan& training, const dataflow::Plan& inference) {
  return std::max(training.batch(), inference.batch());
}

}  // namespace

std::size_t Learner::device_bytes(const engine::Device& device, const dataflow::Plan& training,
                                  const dataflow::Plan& inference, const LearnerOptions& options) {
  const dataflow::ParameterLayout& layout = training.parameters();
  return Replica::device_bytes(layout, options.rule, training.reads_low_precision_weights()) +
         (options.sums_gradients ? GradientSum::device_bytes(layout.trainable_elements()) : 0) +
         arena_bytes(training, inference) + step_bytes(largest_batch(training, inference)) + sizeof(StepResult) +
         device.stream_bytes({});
}

Learner::Learner(engine::Device& device, const dataflow::Plan& training, const dataflow::Plan& inference,
                 const LearnerPlace& place, const LearnerOptions& options)
    : options_(options),
      training_(training),
      inference_(inference),
      replica_(device, training.parameters(), options.rule, training.reads_low_precision_weights()),
      arena_(device.allocate(arena_bytes(training, inference))),
      step_bytes_(step_bytes(largest_batch(training, inference))),
      step_(device.allocate(step_bytes_)),
      result_(device.allocate(sizeof(StepResult))),
      step_ring_(device.allocate_host(slots_bytes(options.result_slots, step_bytes_))),
      result_ring_(device.allocate_host(slots_bytes(options.result_slots, sizeof(StepResult)))),
      done_(static_cast<std::size_t>(options.result_slots)),
      stream_(device.create_stream({.name = fmt::format("learner {}", place.number),
                                    .threads = place.threads,
                                    .first_core = place.first_core})) {
  const dataflow::PlanBuffers buffers = training_buffers();
  gradient_parts_ = training_.gradient_parts(options_.gradient_part_bytes);
  for (const dataflow::GradientPart& part : gradient_parts_) {
    stream_->begin_recording();
    if (gradient_graphs_.empty()) {
      enqueue_gather(training_, options_.training_data);
      training_.forward(*stream_, buffers);
    }
    training_.backward(*stream_, buffers, part);
    gradient_graphs_.push_back(stream_->end_recording());
  }
  update_graph_ = record_update(sources_);
  if (options_.sums_gradients) {
    sum_ = std::make_unique<GradientSum>(device, *stream_, training_.parameters().trainable_elements());
  }

  dataflow::PlanBuffers evaluation = buffers;
  evaluation.weights = place.shared.evaluation_weights;
  evaluation.low_precision_weights = place.shared.rounded_evaluation_weights;
  evaluation.gradient = nullptr;
  evaluation_graph_ = record_evaluation(evaluation);
  if (options_.evaluates_own_weights) {
    dataflow::PlanBuffers own = buffers;
    own.gradient = nullptr;
    own_evaluation_graph_ = record_evaluation(own);
  }

  if (!options.measures_statistics || statistics_bytes(training_) == 0) return;
  statistics_ring_ = device.allocate_host(slots_bytes(options.result_slots, statistics_bytes(training_)));
  evaluation.gradient = replica_.gradient();
  statistics_graph_ = record_training_forward(evaluation);
}

dataflow::PlanBuffers Learner::training_buffers() const {
  return {replica_.weights(),         replica_.gradient(),      arena_.as<std::byte>(),
          step_.as<StepParameters>(), result_.as<StepResult>(), replica_.rounded()};
}

std::unique_ptr<engine::TaskGraph> Learner::record_training_forward(const dataflow::PlanBuffers& buffers) {
  stream_->begin_recording();
  enqueue_gather(training_, options_.training_data);
  training_.forward(*stream_, buffers);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Learner::record_evaluation(const dataflow::PlanBuffers& buffers) {
  stream_->begin_recording();
  enqueue_gather(inference_, options_.evaluation_data);
  inference_.forward(*stream_, buffers);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Learner::record_update(const UpdateSources& sources) {
  StepResult* result = result_.as<StepResult>();
  const float* gradient = sources.gradient != nullptr ? sources.gradient : replica_.gradient();
  engine::WeightUpdate update{.weights = replica_.weights(),
                              .rounded = replica_.rounded(),
                              .gradient = gradient,
                              .statistics = replica_.gradient(),
                              .references = {sources.references[0], sources.references[1]},
                              .ranges = training_.parameters().update_ranges(),
                              .rule = options_.rule,
                              .step = step_.as<StepParameters>(),
                              .non_finite = &result->non_finite};
  if (sources.push_every > 0) {
    update.rule = engine::Sgd{};
  } else {
    for (std::size_t slot = 0; slot < replica_.state().size(); ++slot) {
      update.state[slot] = replica_.state()[slot].values.as<float>();
    }
  }
  stream_->begin_recording();
  update.gradient_scale = enqueue_clip(gradient);
  if (sources.shared != nullptr) {
    update.rounded = nullptr;
    engine::enqueue(*stream_, {sources.shared, update, &steps_at_copy_, &staleness_}, "update");
  } else {
    stream_->enqueue(update, "update");
  }
  // The sum comes after the local step, because it can refuse gradients that the local step accepts at a small rate.
  if (sources.push_every > 1) sum_->enqueue_add(*stream_, gradient, update.gradient_scale, update.non_finite);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Learner::record_push() {
  const bool sums = sources_.push_every > 1;
  if (!sums && !options_.clip_gradient_norm) return nullptr;
  stream_->begin_recording();
  const float* scale = enqueue_clip(replica_.gradient());
  if (sums) sum_->enqueue_add(*stream_, replica_.gradient(), scale, &result_.as<StepResult>()->non_finite);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Learner::record_shared_copy() {
  stream_->begin_recording();
  engine::enqueue(*stream_,
                  {sources_.shared, replica_.weights(), training_.parameters().moving_elements(), &steps_at_copy_},
                  "copy shared weights");
  round_weights(replica_.weights(), replica_.rounded());
  return stream_->end_recording();
}

const float* Learner::enqueue_clip(const float* gradient) {
  if (!options_.clip_gradient_norm) return nullptr;
  float* scale = &result_.as<StepResult>()->gradient_scale;
  stream_->enqueue(engine::GradientClip{.gradient = gradient,
                                        .elements = training_.parameters().trainable_elements(),
                                        .max_norm = *options_.clip_gradient_norm,
                                        .scale = scale},
                   "gradient norm");
  return scale;
}

const float* Learner::gradient_scale(int push_every) const noexcept {
  const bool is_pending = push_every == 1 && options_.clip_gradient_norm.has_value();
  return is_pending ? &result_.as<StepResult>()->gradient_scale : nullptr;
}

// The previous task in this slot must have ended.
void Learner::check_slot() const { ARBALEST_CHECK(done_[slot()].is_complete()); }

void Learner::enqueue_gather(const dataflow::Plan& plan, const dataflow::CachedData* data) {
  if (data == nullptr) return;
  auto* arena = arena_.as<std::byte>();
  stream_->enqueue(data->gather({.indices = indices_in(step_.as<std::byte>()),
                                 .images = plan.input<float>(dataflow::InputDescription::kImage, arena),
                                 .labels = plan.input<std::int32_t>(dataflow::InputDescription::kLabel, arena),
                                 .batch = plan.batch(),
                                 .step = step_.as<StepParameters>()}),
                   "gather");
}

void Learner::copy_in(const dataflow::Plan& plan, const dataflow::CachedData* data, const dataflow::Batch& batch,
                      const StepParameters* parameters, const char* label) {
  std::byte* step = step_ring_.as<std::byte>() + slots_bytes(static_cast<int>(slot()), step_bytes_);
  if (parameters != nullptr) std::memcpy(step, parameters, sizeof(StepParameters));
  ARBALEST_CHECK(data == nullptr || batch.indices != nullptr);
  if (data != nullptr) std::copy_n(batch.indices, plan.batch(), indices_in(step));
  const std::size_t begin = parameters != nullptr ? 0 : sizeof(StepParameters);
  const std::size_t end = data != nullptr ? step_bytes(plan.batch()) : sizeof(StepParameters);
  if (begin < end) stream_->fetch(step_.as<std::byte>() + begin, step + begin, end - begin, label);
  if (data == nullptr) copy_batch(*stream_, plan, batch, arena_.as<std::byte>());
}

void Learner::finish(Ticket& ticket) {
  StepResult& result = result_ring_.as<StepResult>()[slot()];
  ticket.result = &result;
  ticket.done = stream_->deliver(&result, result_.data(), sizeof(StepResult), "result");
  done_[slot()] = ticket.done;
  ++tasks_;
}

void Learner::set_update_sources(const UpdateSources& sources) {
  if (sources == sources_) return;
  sources_ = sources;
  if (sources.shared != nullptr) staleness_ring_.resize(done_.size());
  update_graph_ = record_update(sources);
  shared_copy_graph_ = sources.shared != nullptr ? record_shared_copy() : nullptr;
  push_graph_ = nullptr;
  if (sources.push_every == 0) return;
  push_graph_ = record_push();
  // Without an update of the learner's own, nothing else writes the number of refused elements.
  stream_->fill_zero(result_.data(), sizeof(StepResult), "clear result");
}

Ticket Learner::gradient(const dataflow::Batch& batch, const StepParameters& parameters,
                         std::span<engine::Event> parts) {
  ARBALEST_CHECK(parts.empty() || parts.size() == gradient_graphs_.size());
  check_slot();
  StepParameters step = parameters;
  std::ranges::copy(engine::moment_corrections(options_.rule, ++steps_), step.moment_corrections);
  stream_->begin_task(batch.number, engine::WorkPhase::kTraining);
  copy_in(training_, options_.training_data, batch, &step, "parameters");
  const Ticket ticket{.task = batch.number, .examples = batch.examples};
  if (shared_copy_graph_ != nullptr) stream_->launch(*shared_copy_graph_, "copy shared weights");
  for (std::size_t part = 0; part < gradient_graphs_.size(); ++part) {
    stream_->launch(*gradient_graphs_[part], "gradient");
    if (!parts.empty()) parts[part] = stream_->record();
  }
  return ticket;
}

void Learner::update(Ticket& ticket, const engine::Event& after) {
  stream_->wait(after, "wait for averaging's read");
  stream_->launch(*update_graph_, "update");
  if (sources_.shared != nullptr) {
    ticket.staleness = &staleness_ring_[slot()];
    stream_->copy(&staleness_ring_[slot()], &staleness_, sizeof staleness_, "staleness");
  }
  finish(ticket);
}

void Learner::push(Ticket& ticket) {
  if (push_graph_ != nullptr) stream_->launch(*push_graph_, "push");
  finish(ticket);
}

engine::Event Learner::pull(const float* weights, const engine::Event& ready) {
  const engine::Event read = assign(weights, ready, OptimizerState::kKeep);
  if (sources_.push_every > 1) sum_->enqueue_clear(*stream_);
  return read;
}

Ticket Learner::evaluate(const dataflow::Batch& batch, const engine::Event& weights_ready) {
  stream_->begin_task(batch.number, engine::WorkPhase::kEvaluation);
  stream_->wait(weights_ready, "wait for the central model's copy");
  return evaluate(*evaluation_graph_, batch);
}

Ticket Learner::evaluate_own_weights(const dataflow::Batch& batch) {
  ARBALEST_CHECK(own_evaluation_graph_ != nullptr);
  return evaluate(*own_evaluation_graph_, batch);
}

Ticket Learner::evaluate(const engine::TaskGraph& graph, const dataflow::Batch& batch) {
  check_slot();
  stream_->begin_task(batch.number, engine::WorkPhase::kEvaluation);
  copy_in(inference_, options_.evaluation_data, batch, nullptr, "indices");
  Ticket ticket{.task = batch.number, .examples = batch.examples};
  stream_->launch(graph, "evaluate");
  finish(ticket);
  return ticket;
}

Ticket Learner::training_loss(const dataflow::Batch& batch, const StepParameters& parameters) {
  if (training_loss_graph_ == nullptr) training_loss_graph_ = record_training_forward(training_buffers());
  check_slot();
  stream_->begin_task(batch.number, engine::WorkPhase::kEvaluation);
  copy_in(training_, options_.training_data, batch, &parameters, "parameters for the loss");
  Ticket ticket{.task = batch.number, .examples = batch.examples};
  stream_->launch(*training_loss_graph_, "training loss");
  finish(ticket);
  return ticket;
}

Ticket Learner::measure_statistics(const dataflow::Batch& batch, const StepParameters& parameters,
                                   const engine::Event& weights_ready) {
  ARBALEST_CHECK(statistics_graph_ != nullptr);
  check_slot();
  stream_->begin_task(batch.number, engine::WorkPhase::kStatistics);
  stream_->wait(weights_ready, "wait for the central model's copy");
  copy_in(training_, options_.training_data, batch, &parameters, "parameters for statistics");
  Ticket ticket{.task = batch.number, .examples = batch.examples};
  stream_->launch(*statistics_graph_, "statistics");
  auto* statistics =
      statistics_ring_.as<std::byte>() + slots_bytes(static_cast<int>(slot()), statistics_bytes(training_));
  stream_->copy(statistics, replica_.gradient() + training_.parameters().trainable_elements(),
                statistics_bytes(training_), "statistics of the mini-batch");
  ticket.statistics = reinterpret_cast<const float*>(statistics);
  finish(ticket);
  return ticket;
}

void Learner::weights_were_set() {
  if (replica_.rounded() == nullptr) return;
  round_weights(replica_.weights(), replica_.rounded());
  engine::wait_for(*stream_);
}

void Learner::round_weights(const float* weights, engine::BFloat16* rounded) {
  if (rounded == nullptr) return;
  stream_->enqueue(engine::RoundWeights{weights, rounded, training_.parameters().elements()}, "round weights");
}

engine::Event Learner::assign(const float* weights, const engine::Event& ready, OptimizerState state) {
  stream_->wait(ready, "wait for new weights");
  stream_->copy(replica_.weights(), weights, vector_bytes(training_), "assign weights");
  round_weights(replica_.weights(), replica_.rounded());
  if (state == OptimizerState::kZero) zero_state();
  return stream_->record();
}

void Learner::zero_state() {
  for (const StateSlot& slot : replica_.state()) {
    stream_->fill_zero(slot.values.data(), state_bytes(training_), "restart optimizer state");
  }
  steps_ = 0;
}

void Learner::assign_state(std::size_t slot, const float* values, const engine::Event& ready) {
  stream_->wait(ready, "wait for new optimizer state");
  stream_->copy(replica_.state()[slot].values.data(), values, state_bytes(training_), "assign optimizer state");
}

}  // namespace arbalest::learners
