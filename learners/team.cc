#include "learners/team.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "learners/batch_copy.h"
#include "learners/step_memory.h"

namespace arbalest::learners {

using engine::StepParameters;
using engine::StepResult;

namespace {

// Training and evaluation take turns, so they share the arena.
std::size_t arena_bytes(const dataflow::Plan& training, const dataflow::Plan& inference) {
  return std::max(training.arena_bytes(), inference.arena_bytes());
}

// The stream's name: "learner 0", or "learners 0 to 3".
std::string name_of(const TeamPlace& place) {
  if (place.size == 1) return fmt::format("learner {}", place.number);
  return fmt::format("learners {} to {}", place.number, place.number + place.size - 1);
}

// Returns the step's bytes of a pass, which is one mini-batch of either plan.
std::size_t pass_step_bytes(const dataflow::Plan& training, const dataflow::Plan& inference) {
  return step_bytes(std::max(training.batch(), inference.batch()));
}

std::size_t statistics_bytes(const dataflow::Plan& plan) {
  return static_cast<std::size_t>(plan.parameters().statistic_elements()) * sizeof(float);
}

}  // namespace

std::size_t Team::learner_bytes(const dataflow::Plan& training, const dataflow::Plan& inference,
                                const LearnerOptions& options) {
  const dataflow::ParameterLayout& layout = training.parameters();
  return ReplicaSlabs::device_bytes(layout, options.rule, training.reads_low_precision_weights()) +
         (options.sums_gradients ? GradientSum::device_bytes(layout.trainable_elements()) : 0) +
         Slab::stride(arena_bytes(training, inference)) + Slab::stride(step_bytes(training.batch())) +
         Slab::stride(pass_step_bytes(training, inference)) + Slab::stride(sizeof(StepResult));
}

std::size_t Team::stream_bytes(const engine::Device& device, int size) {
  engine::StreamOptions options;
  options.replicas = size;
  return device.stream_bytes(options);
}

Team::Team(engine::Device& device, const dataflow::Plan& training, const dataflow::Plan& inference,
           const TeamPlace& place, const LearnerOptions& options)
    : options_(options),
      training_(training),
      inference_(inference),
      shared_(place.shared),
      replicas_(device, training.parameters(), options.rule, training.reads_low_precision_weights(), place.size),
      arena_(device, arena_bytes(training, inference), place.size),
      step_(device, step_bytes(training.batch()), place.size),
      pass_step_(device, pass_step_bytes(training, inference), place.size),
      result_(device, sizeof(StepResult), place.size),
      memory_{.count = place.size, .regions = {arena_.region(), step_.region(), pass_step_.region(), result_.region()}},
      parameters_(static_cast<std::size_t>(place.size)),
      done_(static_cast<std::size_t>(options.result_slots)),
      stream_(device.create_stream(
          {.name = name_of(place), .threads = place.threads, .first_core = place.first_core, .replicas = place.size})) {
  replicas_.add_to(memory_);
  const std::size_t parts = done_.size() * static_cast<std::size_t>(place.size);
  step_ring_ = device.allocate_host(parts * pass_step_.stride());
  result_ring_ = device.allocate_host(parts * result_.stride());
  if (measures_statistics()) statistics_ring_ = device.allocate_host(parts * statistics_bytes(training));
  record_gradient();
  update_graph_ = record_update();
  if (options_.sums_gradients) {
    sum_ = std::make_unique<GradientSum>(device, *stream_, training_.parameters().trainable_elements());
  }
  record_passes();
  for (int replica = 0; replica < place.size; ++replica) {
    learners_.push_back(std::make_unique<Learner>(*stream_, training_.parameters(), replicas_.of(replica)));
  }
}

dataflow::PlanBuffers Team::buffers(const Slab& step) const {
  const Replica first = replicas_.of(0);
  return {first.weights, first.gradient, arena_.of<std::byte>(0), step.of<StepParameters>(0), result(), first.rounded};
}

void Team::record_gradient() {
  gradient_parts_ = training_.gradient_parts(options_.gradient_part_bytes);
  for (const dataflow::GradientPart& part : gradient_parts_) {
    stream_->begin_recording(memory_);
    if (gradient_graphs_.empty()) {
      enqueue_gather(*stream_, training_, options_.training_data, step_.of<std::byte>(0), arena_.of<std::byte>(0));
      training_.forward(*stream_, buffers(step_));
    }
    training_.backward(*stream_, buffers(step_), part);
    gradient_graphs_.push_back(stream_->end_recording());
  }
}

std::unique_ptr<engine::TaskGraph> Team::record_update() {
  const Replica first = replicas_.of(0);
  const float* gradient = sources_.gradient != nullptr ? sources_.gradient : first.gradient;
  engine::WeightUpdate update{.weights = first.weights,
                              .rounded = first.rounded,
                              .gradient = gradient,
                              .statistics = first.gradient,
                              .references = {sources_.references[0], sources_.references[1]},
                              .ranges = training_.parameters().update_ranges(),
                              .rule = options_.rule,
                              .step = step_.of<StepParameters>(0),
                              .non_finite = &result()->non_finite};
  if (sources_.push_every > 0) {
    update.rule = engine::Sgd{};
  } else {
    for (std::size_t slot = 0; slot < first.state.size(); ++slot) update.state[slot] = first.state[slot].values;
  }
  stream_->begin_recording(memory_);
  update.gradient_scale = enqueue_clip(gradient);
  if (sources_.shared != nullptr) {
    update.rounded = nullptr;
    engine::enqueue(*stream_, {sources_.shared, update, &steps_at_copy_, &staleness_}, "update");
  } else {
    stream_->enqueue(update, "update");
  }
  // The sum comes after the local step, because it can refuse gradients that the local step accepts at a small rate.
  if (sources_.push_every > 1) sum_->enqueue_add(*stream_, gradient, update.gradient_scale, update.non_finite);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Team::record_push() {
  const bool sums = sources_.push_every > 1;
  if (!sums && !options_.clip_gradient_norm) return nullptr;
  const float* gradient = replicas_.of(0).gradient;
  stream_->begin_recording();
  const float* scale = enqueue_clip(gradient);
  if (sums) sum_->enqueue_add(*stream_, gradient, scale, &result()->non_finite);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Team::record_shared_copy() {
  const Replica own = replicas_.of(0);
  stream_->begin_recording();
  engine::enqueue(*stream_, {sources_.shared, own.weights, training_.parameters().moving_elements(), &steps_at_copy_},
                  "copy shared weights");
  round_weights(*stream_, training_.parameters(), own);
  return stream_->end_recording();
}

const float* Team::enqueue_clip(const float* gradient) {
  if (!options_.clip_gradient_norm) return nullptr;
  float* scale = &result()->gradient_scale;
  stream_->enqueue(engine::GradientClip{.gradient = gradient,
                                        .elements = training_.parameters().trainable_elements(),
                                        .max_norm = *options_.clip_gradient_norm,
                                        .scale = scale},
                   "gradient norm");
  return scale;
}

void Team::set_update_sources(const UpdateSources& sources) {
  if (sources == sources_) return;
  ARBALEST_CHECK(size() == 1 || (sources.push_every == 0 && sources.shared == nullptr));
  sources_ = sources;
  if (sources.shared != nullptr) staleness_ring_.resize(done_.size());
  update_graph_ = record_update();
  shared_copy_graph_ = sources.shared != nullptr ? record_shared_copy() : nullptr;
  push_graph_ = nullptr;
  if (sources.push_every == 0) return;
  push_graph_ = record_push();
  // Without an update of the learner's own, nothing else writes the number of refused elements.
  stream_->fill_zero(result(), sizeof(StepResult), "clear result");
}

void Team::begin(std::span<const dataflow::Batch> batches, engine::WorkPhase phase, std::span<Ticket> tickets) {
  ARBALEST_CHECK(!batches.empty() && batches.size() <= size() && tickets.size() == batches.size());
  ARBALEST_CHECK(done_[slot()].is_complete());  // the previous task in this slot must have ended
  stream_->begin_task(batches[0].number, phase);
  for (std::size_t j = 0; j < tickets.size(); ++j) {
    tickets[j] = {.task = batches[j].number, .examples = batches[j].examples};
  }
}

void Team::set_parameters(std::span<const dataflow::Batch> batches, const StepParameters& parameters) {
  std::ranges::fill(parameters_, parameters);
  for (std::size_t j = 0; j < batches.size(); ++j) parameters_[j].task = batches[j].number;
}

void Team::copy_in(const dataflow::Plan& plan, const Slab& step, std::span<const dataflow::Batch> batches,
                   const char* label) {
  const bool trains = &plan == &training_;
  const bool gathers = (trains ? options_.training_data : options_.evaluation_data) != nullptr;
  std::byte* const steps = step_ring_.as<std::byte>() + slot() * size() * pass_step_.stride();
  for (std::size_t j = 0; j < size(); ++j) {
    const dataflow::Batch& batch = batches[std::min(j, batches.size() - 1)];
    std::byte* const own = steps + j * step.stride();
    std::memcpy(own, &parameters_[j], sizeof(StepParameters));
    ARBALEST_CHECK(!gathers || batch.indices != nullptr);
    if (gathers) std::copy_n(batch.indices, plan.batch(), indices_in(own));
    if (!gathers) copy_batch(*stream_, plan, batch, arena_.of<std::byte>(static_cast<int>(j)));
  }
  if (!trains && !gathers) return;
  const std::size_t last = gathers ? step_bytes(plan.batch()) : sizeof(StepParameters);
  stream_->fetch(step.of<std::byte>(0), steps, (size() - 1) * step.stride() + last, label);
}

void Team::gradient(std::span<const dataflow::Batch> batches, const StepParameters& parameters,
                    std::span<Ticket> tickets, std::span<engine::Event> parts) {
  ARBALEST_CHECK(batches.size() == size());
  ARBALEST_CHECK(parts.empty() || parts.size() == gradient_graphs_.size());
  begin(batches, engine::WorkPhase::kTraining, tickets);
  set_parameters(batches, parameters);
  for (std::size_t j = 0; j < size(); ++j) {
    std::ranges::copy(engine::moment_corrections(options_.rule, learners_[j]->count_step()),
                      parameters_[j].moment_corrections);
  }
  copy_in(training_, step_, batches, "parameters");
  if (shared_copy_graph_ != nullptr) stream_->launch(*shared_copy_graph_, "copy shared weights");
  for (std::size_t part = 0; part < gradient_graphs_.size(); ++part) {
    stream_->launch(*gradient_graphs_[part], "gradient");
    if (!parts.empty()) parts[part] = stream_->record();
  }
}

void Team::update(std::span<Ticket> tickets, const engine::Event& after) {
  ARBALEST_CHECK(tickets.size() == size());
  stream_->wait(after, "wait for averaging's read");
  stream_->launch(*update_graph_, "update");
  if (sources_.shared != nullptr) {
    tickets[0].staleness = &staleness_ring_[slot()];
    stream_->copy(&staleness_ring_[slot()], &staleness_, sizeof staleness_, "staleness");
  }
  finish(tickets);
}

void Team::finish(std::span<Ticket> tickets) {
  std::byte* const results = result_ring_.as<std::byte>() + slot() * size() * result_.stride();
  const std::size_t bytes = (tickets.size() - 1) * result_.stride() + sizeof(StepResult);
  done_[slot()] = stream_->deliver(results, result(), bytes, "result");
  for (std::size_t j = 0; j < tickets.size(); ++j) {
    tickets[j].result = reinterpret_cast<const StepResult*>(results + j * result_.stride());
    tickets[j].done = done_[slot()];
  }
  ++tasks_;
}

void Team::push(Ticket& ticket) {
  if (push_graph_ != nullptr) stream_->launch(*push_graph_, "push");
  finish({&ticket, 1});
}

const float* Team::pushed(int push_every) const noexcept {
  return push_every > 1 ? sum_->values() : replicas_.of(0).gradient;
}

const float* Team::gradient_scale(int push_every) const noexcept {
  const bool is_pending = push_every == 1 && options_.clip_gradient_norm.has_value();
  return is_pending ? &result()->gradient_scale : nullptr;
}

engine::Event Team::pull(const float* weights, const engine::Event& ready) {
  const engine::Event read = learners_.front()->assign(weights, ready, OptimizerState::kKeep);
  if (sources_.push_every > 1) sum_->enqueue_clear(*stream_);
  return read;
}

}  // namespace arbalest::learners
