#include "learners/learner_pool.h"

#include <algorithm>

namespace arbalest::learners {

LearnerPool::LearnerPool(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options,
                         const dataflow::ParameterLayout* parameters)
    : device_(device),
      options_(options),
      threads_(std::max(1, device.cores() / options.learners)),
      training_(graph, device,
                {.batch = options.batch,
                 .threads = threads_,
                 .mode = engine::OperatorMode::kTraining,
                 .precision = options.precision,
                 .parameters = parameters,
                 .without_decay = options.without_decay}),
      inference_(graph, device,
                 {.batch = options.evaluation_batch,
                  .threads = threads_,
                  .mode = engine::OperatorMode::kInference,
                  .precision = options.precision,
                  .parameters = &training_.parameters()}) {}

std::size_t LearnerPool::evaluation_weights_bytes() const {
  return static_cast<std::size_t>(training_.parameters().elements()) * sizeof(float);
}

std::size_t LearnerPool::rounded_evaluation_weights_bytes() const {
  if (!inference_.reads_low_precision_weights()) return 0;
  return static_cast<std::size_t>(training_.parameters().elements()) * sizeof(engine::BFloat16);
}

std::size_t LearnerPool::shared_bytes() const {
  return evaluation_weights_bytes() + rounded_evaluation_weights_bytes();
}

std::size_t LearnerPool::learner_bytes() const {
  return Learner::device_bytes(device_, training_, inference_, options_.rule);
}

void LearnerPool::create(const float* const (&central)[2]) {
  evaluation_weights_ = device_.allocate(evaluation_weights_bytes());
  if (inference_.reads_low_precision_weights()) {
    rounded_evaluation_weights_ = device_.allocate(rounded_evaluation_weights_bytes());
  }
  for (int i = 0; i < options_.learners; ++i) {
    learners_.push_back(
        std::make_unique<Learner>(device_, training_, inference_,
                                  LearnerOptions{.number = options_.first_number + i,
                                                 .first_core = i * threads_,
                                                 .threads = threads_,
                                                 .result_slots = options_.result_slots,
                                                 .rule = options_.rule,
                                                 .clip_gradient_norm = options_.clip_gradient_norm,
                                                 .central = {central[0], central[1]},
                                                 .evaluation_weights = evaluation_weights(),
                                                 .rounded_evaluation_weights = rounded_evaluation_weights(),
                                                 .training_data = options_.training_data,
                                                 .evaluation_data = options_.evaluation_data}));
  }
}

}  // namespace arbalest::learners
