// Running statistics of batch normalization for the central model: the mean of the statistics of training mini-batches
// under the evaluation weights, which are the central model or its moving average. torch.optim.swa_utils.update_bn does
// the same for averaged weights. Averaging alone would give the central model the replicas' statistics, although it
// equals none of the replicas.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/buffer.h"
#include "engine/event.h"
#include "learners/learner_pool.h"

namespace arbalest::scheduler {

class CentralStatistics {
 public:
  // Any pool of the run will do: all pools have the same parameters.
  explicit CentralStatistics(const learners::LearnerPool& pool);

  // Forgets all that was added, the finished statistics and copies(); are_of() is then false. The events of copies()
  // must have passed.
  void start();
  // Adds the statistics of one mini-batch, [statistic_elements()] in host memory. Sums depend on the order of the
  // calls.
  void add(const float* of_batch);
  // Sets the statistics to the mean of all that was added. They belong to the model after `batches` mini-batches. If
  // nothing was added or a sum is not finite, there are no statistics, but are_of() is true.
  void finish(std::uint64_t batches);

  // Number of a model's statistics.
  std::size_t elements() const noexcept { return sums_.size(); }
  // Whether finish() was called for the model after `batches` mini-batches.
  bool are_of(std::uint64_t batches) const noexcept { return batches_ == batches; }

  // Enqueues on the stream of a learner of the pool, after `ready`, the copy of the statistics to the pool's evaluation
  // weights. Returns the event after which the weights are complete. Without statistics, the averaged ones remain.
  engine::Event enqueue_copy(const learners::LearnerPool& pool, learners::Learner& learner, const engine::Event& ready);
  // Events of the copies since start(). They must pass before the next start(), which reuses the copies' source.
  std::span<const engine::Event> copies() const noexcept { return copies_; }

 private:
  std::optional<std::uint64_t> batches_;
  std::vector<double> sums_;
  std::int64_t added_ = 0;
  engine::Buffer values_;  // host: float32 [statistic_elements()]
  bool exist_ = false;
  std::vector<engine::Event> copies_;
};

}  // namespace arbalest::scheduler
