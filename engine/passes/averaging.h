// The passes that combine the replicas' flat vectors. `sum` has kAveragingTail more elements than the model; the tail
// is reduced with it.
//
// Every sum over replicas follows a pairwise tree over their numbers. The sum of a range is the sum of its first part
// plus the sum of the rest; the first part is the largest power of two below the range's length. So the sums of
// replicas 0..3 and 4..7 on two devices add up to the same bits as one device's sum of 0..7.
//
// The last `statistics` elements are running statistics (ops/batch_norm.h). The central model's statistics are always
// the mean of the replicas',
//   z^{t+1} = z^t + (1/k) sum_j (w_j - z^t)
// and statistics do not count in distances.
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::engine {

enum AveragingTail : std::int64_t {
  kNonFiniteCount = 0,   // number of elements that are not finite
  kSquaredDistance = 1,  // sum_j |w_j - z|^2
  kSquaredSum = 2,       // |S|^2, S = sum_j (w_j - z) over all devices; 0 if S is not finite
  kAveragingTail = 3
};

// Computes S = sum_j (w_j - z) and its tail, except kSquaredSum, which becomes 0.
struct ReplicaDifference {
  std::span<const float* const> replicas;  // w_j; the array must outlive the task
  const float* central = nullptr;          // z^t
  float* sum = nullptr;                    // [elements + kAveragingTail]
  std::int64_t elements = 0;
  std::int64_t statistics = 0;  // part of `elements`, at the end
};

// The step of the central model. Without a velocity vector it follows the heavy-ball rule
//   z^{t+1} = z^t + step S + momentum (z^t - z^{t-1})
// and with one Nesterov's, in the form of torch.optim.SGD,
//   v <- momentum v + step S     z^{t+1} = z^t + step S + momentum v
struct CentralStep {
  float step = 0.0F;          // eta / k
  float momentum = 0.0F;      // mu
  float* velocity = nullptr;  // v, [elements]; statistics are not read
  float mean_factor = 0.0F;   // 1/k, with k the number of replicas on all devices
};

// Writes z^{t+1} over z^{t-1}. If the tail counts an element that is not finite, or z^{t+1} has one (which the tail
// then counts), z^{t+1} = z^t. Sets kSquaredSum.
struct CentralUpdate {
  const float* central = nullptr;  // z^t
  float* previous = nullptr;       // in: z^{t-1}, out: z^{t+1}
  float* sum = nullptr;            // [elements + kAveragingTail], reduced over all devices
  CentralStep by;
  std::int64_t elements = 0;
  std::int64_t statistics = 0;  // part of `elements`, at the end
};

// ReplicaDifference and CentralUpdate in one pass, if no other device takes part. S stays in the caches and only its
// tail is stored, so 4 (k + 3) bytes per element are moved instead of 4 (k + 7). The bits are the same.
struct LocalAveraging {
  std::span<const float* const> replicas;  // w_j; the array must outlive the task
  const float* central = nullptr;          // z^t
  float* previous = nullptr;               // in: z^{t-1}, out: z^{t+1}
  float* tail = nullptr;                   // [kAveragingTail]
  CentralStep by;
  std::int64_t elements = 0;
  std::int64_t statistics = 0;  // part of `elements`, at the end
};

// mean = factor sum_j v_j, summed by the pairwise tree.
struct VectorMean {
  std::span<const float* const> vectors;  // v_j, [offset + elements] each; the array must outlive the task
  std::int64_t offset = 0;                // first element that is read
  float* mean = nullptr;                  // [elements]; must not be one of the vectors
  std::int64_t elements = 0;
  float factor = 1.0F;
};

}  // namespace arbalest::engine
