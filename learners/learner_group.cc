#include "learners/learner_group.h"

#include <iterator>

namespace arbalest::learners {

LearnerPlans::LearnerPlans(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options,
                           int threads, int team, const dataflow::ParameterLayout* parameters)
    : training(graph, device,
               {.batch = options.batch,
                .threads = threads,
                .replicas = team,
                .mode = engine::OperatorMode::kTraining,
                .precision = options.precision,
                .parameters = parameters,
                .without_decay = options.without_decay}),
      inference(graph, device,
                {.batch = options.evaluation_batch,
                 .threads = threads,
                 .replicas = team,
                 .mode = engine::OperatorMode::kInference,
                 .precision = options.precision,
                 .parameters = &training.parameters()}) {}

std::size_t LearnerGroup::learner_bytes(const PoolOptions& options, int team) const {
  const auto size = static_cast<std::size_t>(team);
  return Team::learner_bytes(plans_->training, plans_->inference, options.learner) +
         (Team::stream_bytes(device_, team) + size - 1) / size;
}

void LearnerGroup::grow(int count, const PoolOptions& options, const SharedVectors& shared) {
  std::vector<std::unique_ptr<Team>> created;
  for (int number = static_cast<int>(learners_.size()); number < count; number += team_) {
    const TeamPlace place{
        .number = number, .size = team_, .first_core = number * threads_, .threads = threads_, .shared = shared};
    created.push_back(std::make_unique<Team>(device_, plans_->training, plans_->inference, place, options.learner));
  }
  teams_.reserve(teams_.size() + created.size());
  learners_.reserve(static_cast<std::size_t>(count));
  for (const auto& team : created) {
    for (const auto& learner : team->learners()) learners_.push_back(learner.get());
  }
  teams_.insert(teams_.end(), std::make_move_iterator(created.begin()), std::make_move_iterator(created.end()));
}

void LearnerGroup::shrink(int count) {
  const auto teams = static_cast<std::size_t>(count / team_);
  if (teams >= teams_.size()) return;
  teams_.resize(teams);
  learners_.resize(teams * static_cast<std::size_t>(team_));
}

}  // namespace arbalest::learners
