#include "scheduler/evaluation/central_statistics.h"

#include <algorithm>
#include <cmath>

#include "engine/stream.h"

namespace arbalest::scheduler {

CentralStatistics::CentralStatistics(const learners::LearnerPool& pool)
    : sums_(static_cast<std::size_t>(pool.training_plan().parameters().statistic_elements())),
      values_(pool.device().allocate_host(sums_.size() * sizeof(float))) {}

void CentralStatistics::start() {
  batches_.reset();
  std::ranges::fill(sums_, 0.0);
  added_ = 0;
  exist_ = false;
  copies_.clear();
}

void CentralStatistics::add(const float* of_batch) {
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(of_batch[i]);
  ++added_;
}

void CentralStatistics::finish(std::uint64_t batches) {
  batches_ = batches;
  const auto finite = [](double sum) { return std::isfinite(sum); };
  exist_ = added_ > 0 && std::ranges::all_of(sums_, finite);
  if (!exist_) return;
  auto* values = values_.as<float>();
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    values[i] = static_cast<float>(sums_[i] / static_cast<double>(added_));
  }
}

engine::Event CentralStatistics::enqueue_copy(const learners::LearnerPool& pool, learners::Learner& learner,
                                              const engine::Event& ready) {
  if (!exist_) return ready;
  engine::Stream& stream = learner.stream();
  stream.wait(ready, "wait for the central model's copy");
  stream.copy(pool.evaluation_weights() + pool.training_plan().parameters().trainable_elements(), values_.data(),
              sums_.size() * sizeof(float), "statistics of the central model");
  copies_.push_back(stream.record());
  return copies_.back();
}

}  // namespace arbalest::scheduler
