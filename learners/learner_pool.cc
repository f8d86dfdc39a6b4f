#include "learners/learner_pool.h"

#include <algorithm>
#include <utility>

#include "dataflow/split/split_graph.h"
#include "engine/base/error.h"

namespace arbalest::learners {

LearnerPool::LearnerPool(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options, int learners,
                         const dataflow::ParameterLayout* parameters)
    : graph_(options.exchange.group ? dataflow::split_graph(graph, options.exchange) : graph),
      device_(device),
      options_(options),
      count_(learners) {
  const GroupKey key = key_for(learners);
  auto plans = std::make_shared<const LearnerPlans>(graph_, device, options, key.threads, key.team, parameters);
  groups_[key] = std::make_unique<LearnerGroup>(device, std::move(plans), key.threads, key.team);
  active_ = groups_[key].get();
}

// Learners on a GPU have no compute threads, so they form one group.
int LearnerPool::threads_for(int count) const {
  if (device_.is_cuda()) return 1;
  const int threads = std::max(1, device_.cores() / count);
  return most_threads_ > 0 ? std::min(threads, most_threads_) : threads;
}

int LearnerPool::team_for(int count, int team) const {
  if (!device_.takes_teams()) return 1;
  for (int size = std::min(team > 0 ? team : options_.team, count); size > 1; --size) {
    if (count % size == 0) return size;
  }
  return 1;
}

std::size_t LearnerPool::evaluation_weights_bytes() const {
  return static_cast<std::size_t>(training_plan().parameters().elements()) * sizeof(float);
}

std::size_t LearnerPool::rounded_evaluation_weights_bytes() const {
  if (!active().plans()->inference.reads_low_precision_weights()) return 0;
  return static_cast<std::size_t>(training_plan().parameters().elements()) * sizeof(engine::BFloat16);
}

std::size_t LearnerPool::shared_bytes() const {
  return evaluation_weights_bytes() + rounded_evaluation_weights_bytes();
}

SharedVectors LearnerPool::shared_vectors() const { return {evaluation_weights(), rounded_evaluation_weights()}; }

void LearnerPool::create() {
  evaluation_weights_ = device_.allocate(evaluation_weights_bytes());
  if (const std::size_t bytes = rounded_evaluation_weights_bytes(); bytes > 0) {
    rounded_evaluation_weights_ = device_.allocate(bytes);
  }
  active().grow(count_, options_, shared_vectors());
}

void LearnerPool::prepare(int count, int team) {
  ARBALEST_CHECK(count > 0);
  const GroupKey key = key_for(count, team);
  const auto found = groups_.find(key);
  if (found != groups_.end()) {
    found->second->grow(count, options_, shared_vectors());
    return;
  }
  const auto same_threads =
      std::ranges::find(groups_, key.threads, [](const auto& each) { return each.first.threads; });
  auto plans = same_threads != groups_.end()
                   ? same_threads->second->plans()
                   : std::make_shared<const LearnerPlans>(graph_, device_, options_, key.threads, key.team,
                                                          &training_plan().parameters());
  auto group = std::make_unique<LearnerGroup>(device_, std::move(plans), key.threads, key.team);
  group->grow(count, options_, shared_vectors());
  groups_.emplace(key, std::move(group));
}

void LearnerPool::activate(int count) {
  const auto found = groups_.find(key_for(count));
  ARBALEST_CHECK(found != groups_.end() && std::cmp_less_equal(count, found->second->learners().size()));
  active_ = found->second.get();
  count_ = count;
}

void LearnerPool::keep(int count, int team) {
  const GroupKey key = key_for(count, team);
  std::erase_if(groups_, [&](const auto& entry) { return entry.second.get() != active_ && entry.first != key; });
  for (const auto& [of, group] : groups_) {
    group->shrink(std::max(group.get() == active_ ? count_ : 0, of == key ? count : 0));
  }
}

}  // namespace arbalest::learners
