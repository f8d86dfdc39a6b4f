// Sizes of all rings between the host and the devices: how many tasks, results and mini-batches may be under way.
#pragma once

#include <algorithm>
#include <cstdint>

namespace arbalest::scheduler {

// An *iteration* is the unit of enqueued work. A run can stop, be evaluated or be regrouped only between iterations.
// With pulled replicas an iteration is a whole round of several steps, so that a round has one learning rate; otherwise
// it is one step of every learner.

// Iterations that may be enqueued before the oldest has ended; enough to keep every stream busy.
inline constexpr int kRunAhead = 2;

// Tasks of one learner that may be under way at a time, for iterations of `steps` steps (sma::longest_iteration). This
// must be the value of LearnerOptions::result_slots.
constexpr int result_slots(int steps) { return (kRunAhead + 1) * steps; }
// Slots that a batch ring needs: all tasks under way, and one iteration that is being filled.
constexpr int needed_ring_slots(int learners, int steps) { return (kRunAhead + 2) * learners * steps; }
// Slots of a ring of images. More slots wake the thread pool less often (measured: 4 slots of MNIST cost 6.5 % of a
// core, 16 cost 2 to 3.5 %). Rings of large images get only the slots that they need.
constexpr int image_ring_slots(std::int64_t batch_bytes) {
  constexpr std::int64_t kSmallRing = std::int64_t{16} << 20U;  // bytes that a ring may use beyond its need
  return static_cast<int>(std::clamp<std::int64_t>(kSmallRing / batch_bytes, 1, 16));
}
// Slots of a ring of indices. Indices take few bytes, so the thread pool is woken only every few hundred batches. The
// ring is not longer than an epoch, because a BatchOrder caches only two epochs.
constexpr int index_ring_slots(std::int64_t batches_per_epoch) {
  return static_cast<int>(std::min<std::int64_t>(batches_per_epoch, 1024));
}

// In both functions `wanted` is a result of image_ring_slots or index_ring_slots.
//
// Slots of the ring that training reads.
// `within_bound`: sma::most_steps_within_bound.
constexpr int training_ring_slots(int learners, int steps, int within_bound, int wanted) {
  return std::max({needed_ring_slots(learners, steps), learners * within_bound, wanted});
}
// Slots of a finite ring (evaluation, statistics) that is read repeatedly from start to end. They hold the batches
// under way on the learners and one per learner that is being filled, but no more than the pass has.
constexpr int pass_ring_slots(int learners, std::int64_t batches, int wanted) {
  const std::int64_t most = std::max<std::int64_t>(batches, 1);
  return static_cast<int>(std::min<std::int64_t>(std::max((kRunAhead + 1) * learners, wanted), most));
}

}  // namespace arbalest::scheduler
