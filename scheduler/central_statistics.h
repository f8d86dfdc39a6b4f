// Running statistics of batch normalization for the central model: the mean of what training mini-batches have when the
// central model itself sees them, as PyTorch's torch.optim.swa_utils.update_bn does it for averaged weights. What
// averaging carries along are the replicas' statistics, and z is none of the replicas.
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
  // All pools have the same parameters.
  explicit CentralStatistics(const learners::LearnerPool& pool);

  // Forgets what there is. What enqueue_copy() returned must have passed.
  void start();
  // The statistics of one more mini-batch, [statistic_elements()]. Sums go by the sequence of calls.
  void add(const float* of_batch);
  // Takes the mean of what was added, as that of the model after so many mini-batches. Numbers that are not finite are
  // of no use: there are then no statistics.
  void finish(std::uint64_t batches);

  // Whether finish() was for the model after so many mini-batches.
  bool are_of(std::uint64_t batches) const noexcept { return batches_ == batches; }

  // Stream ordering: enqueues on a learner of the pool, after `ready`, the copy to the pool's evaluation weights, and
  // returns the event after which they are whole. Without statistics what averaging has brought there remains.
  engine::Event enqueue_copy(const learners::LearnerPool& pool, learners::Learner& learner, const engine::Event& ready);
  // Of the copies since start(), whose source the next start() gives up.
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
