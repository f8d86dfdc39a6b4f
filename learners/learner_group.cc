#include "learners/learner_group.h"

#include <iterator>

namespace arbalest::learners {

LearnerGroup::LearnerGroup(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options,
                           int threads, const dataflow::ParameterLayout* parameters)
    : device_(device),
      threads_(threads),
      training_(graph, device,
                {.batch = options.batch,
                 .threads = threads,
                 .mode = engine::OperatorMode::kTraining,
                 .precision = options.precision,
                 .parameters = parameters,
                 .without_decay = options.without_decay}),
      inference_(graph, device,
                 {.batch = options.evaluation_batch,
                  .threads = threads,
                  .mode = engine::OperatorMode::kInference,
                  .precision = options.precision,
                  .parameters = &training_.parameters()}) {}

std::size_t LearnerGroup::learner_bytes(const PoolOptions& options) const {
  return Learner::device_bytes(device_, training_, inference_, options.learner);
}

void LearnerGroup::grow(int count, const PoolOptions& options, const SharedVectors& shared) {
  std::vector<std::unique_ptr<Learner>> created;
  for (int number = static_cast<int>(learners_.size()); number < count; ++number) {
    const LearnerPlace place{.number = number, .first_core = number * threads_, .threads = threads_, .shared = shared};
    created.push_back(std::make_unique<Learner>(device_, training_, inference_, place, options.learner));
  }
  learners_.insert(learners_.end(), std::make_move_iterator(created.begin()), std::make_move_iterator(created.end()));
}

}  // namespace arbalest::learners
