// The variance of vectors. The gradient noise scale is estimated from it (autotuner/noise_scale.h).
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::engine {

enum VectorVarianceResult : std::int64_t {
  kSumOfSquares = 0,  // sum_j |v_j|^2
  kSquareOfSum = 1,   // |sum_j v_j|^2
  kVectorVarianceResults = 2
};

// Sums are in double or in short runs of float32, and in one order, whatever the number of threads.
struct VectorVariance {
  std::span<const float* const> vectors;  // v_j, [elements] each; the array must outlive the task
  std::int64_t elements = 0;
  float* result = nullptr;  // [kVectorVarianceResults]
};

}  // namespace arbalest::engine
