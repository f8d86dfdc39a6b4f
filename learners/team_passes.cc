// The passes of a team: forward over mini-batches, without a training step.
#include "engine/base/error.h"
#include "learners/step_memory.h"
#include "learners/team.h"

namespace arbalest::learners {

using engine::StepParameters;

dataflow::PlanBuffers Team::evaluation_buffers() const {
  dataflow::PlanBuffers shared = buffers(pass_step_);
  shared.weights = shared_.evaluation_weights;
  shared.low_precision_weights = shared_.rounded_evaluation_weights;
  return shared;
}

void Team::record_passes() {
  evaluation_graph_ = record_evaluation(evaluation_buffers());
  if (options_.evaluates_own_weights) own_evaluation_graph_ = record_evaluation(buffers(pass_step_));
  if (measures_statistics()) statistics_graph_ = record_training_forward(evaluation_buffers());
}

std::unique_ptr<engine::TaskGraph> Team::record_training_forward(const dataflow::PlanBuffers& buffers) {
  stream_->begin_recording(memory_);
  enqueue_gather(*stream_, training_, options_.training_data, pass_step_.of<std::byte>(0), buffers.arena);
  training_.forward(*stream_, buffers);
  return stream_->end_recording();
}

std::unique_ptr<engine::TaskGraph> Team::record_evaluation(dataflow::PlanBuffers buffers) {
  buffers.gradient = nullptr;
  stream_->begin_recording(memory_);
  enqueue_gather(*stream_, inference_, options_.evaluation_data, pass_step_.of<std::byte>(0), buffers.arena);
  inference_.forward(*stream_, buffers);
  return stream_->end_recording();
}

void Team::evaluate(std::span<const dataflow::Batch> batches, const engine::Event& weights_ready,
                    std::span<Ticket> tickets) {
  begin(batches, engine::WorkPhase::kEvaluation, tickets);
  stream_->wait(weights_ready, "wait for the central model's copy");
  copy_in(inference_, pass_step_, batches, "indices");
  stream_->launch(*evaluation_graph_, "evaluate");
  finish(tickets);
}

void Team::evaluate_own_weights(std::span<const dataflow::Batch> batches, std::span<Ticket> tickets) {
  ARBALEST_CHECK(own_evaluation_graph_ != nullptr);
  begin(batches, engine::WorkPhase::kEvaluation, tickets);
  copy_in(inference_, pass_step_, batches, "indices");
  stream_->launch(*own_evaluation_graph_, "evaluate");
  finish(tickets);
}

void Team::training_loss(std::span<const dataflow::Batch> batches, const StepParameters& parameters,
                         std::span<Ticket> tickets) {
  if (training_loss_graph_ == nullptr) training_loss_graph_ = record_training_forward(buffers(pass_step_));
  begin(batches, engine::WorkPhase::kEvaluation, tickets);
  set_parameters(batches, parameters);
  copy_in(training_, pass_step_, batches, "parameters for the loss");
  stream_->launch(*training_loss_graph_, "training loss");
  finish(tickets);
}

void Team::measure_statistics(std::span<const dataflow::Batch> batches, const StepParameters& parameters,
                              const engine::Event& weights_ready, std::span<Ticket> tickets) {
  ARBALEST_CHECK(statistics_graph_ != nullptr);
  begin(batches, engine::WorkPhase::kStatistics, tickets);
  stream_->wait(weights_ready, "wait for the central model's copy");
  set_parameters(batches, parameters);
  copy_in(training_, pass_step_, batches, "parameters for statistics");
  stream_->launch(*statistics_graph_, "statistics");
  const auto elements = static_cast<std::size_t>(training_.parameters().statistic_elements());
  for (std::size_t j = 0; j < tickets.size(); ++j) {
    float* const statistics = statistics_ring_.as<float>() + (slot() * size() + j) * elements;
    const float* const gradient = replicas_.of(static_cast<int>(j)).gradient;
    stream_->copy(statistics, gradient + training_.parameters().trainable_elements(), elements * sizeof(float),
                  "statistics of the mini-batch");
    tickets[j].statistics = statistics;
  }
  finish(tickets);
}

}  // namespace arbalest::learners
