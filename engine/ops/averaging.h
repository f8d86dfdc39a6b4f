// The passes of model averaging over flat vectors. `sum` has kAveragingTail more elements than the model; they are
// reduced with it.
//
// The last `statistics` of the elements are running statistics (ops/batch_norm.h): their z is the mean of the
// replicas',
//   z^{t+1} = z^t + (1/k) sum_j (w_j - z^t)
// whatever alpha and mu are, and they do not count in distances.
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::engine {

enum AveragingTail : std::int64_t { kNonFiniteCount = 0, kSquaredDistance = 1, kAveragingTail = 2 };

// sum = sum_j (w_j - z); tail: elements that are not finite, and sum_j |w_j - z|^2 without the statistics. Fixed order
// of additions.
struct ReplicaDifference {
  std::span<const float* const> replicas;  // w_j; the array must outlive the task
  const float* central = nullptr;          // z^t
  float* sum = nullptr;                    // [elements + kAveragingTail]
  std::int64_t elements = 0;
  std::int64_t statistics = 0;  // of the elements, the last
};

// z^{t+1} = z^t + alpha * sum + mu (z^t - z^{t-1}), written over z^{t-1}. If the tail counts an element that is not
// finite, or z^{t+1} has one (the tail then counts it), z^{t+1} = z^t.
struct CentralUpdate {
  const float* central = nullptr;  // z^t
  float* previous = nullptr;       // in: z^{t-1}, out: z^{t+1}
  float* sum = nullptr;            // [elements + kAveragingTail], reduced over all devices
  float alpha = 0.0F;
  float central_momentum = 0.0F;  // mu
  std::int64_t elements = 0;
  std::int64_t statistics = 0;  // of the elements, the last
  float mean_factor = 0.0F;     // 1/k, with k the number of replicas on all devices
};

// Both in one pass, where no other device takes part: S stays in the caches and only its tail is stored, so that
// 4 (k + 3) bytes an element are moved and not 4 (k + 7). The same bits as the two.
struct LocalAveraging {
  std::span<const float* const> replicas;  // w_j; the array must outlive the task
  const float* central = nullptr;          // z^t
  float* previous = nullptr;               // in: z^{t-1}, out: z^{t+1}
  float* tail = nullptr;                   // [kAveragingTail]
  float alpha = 0.0F;
  float central_momentum = 0.0F;  // mu
  std::int64_t elements = 0;
  std::int64_t statistics = 0;  // of the elements, the last
  float mean_factor = 0.0F;     // 1/k
};

}  // namespace arbalest::engine
