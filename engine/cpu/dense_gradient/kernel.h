// The inner loop of engine/cpu/dense_gradient/dense_gradient.h.
#pragma once

#include <cstdint>

#include "engine/cpu/lanes/kernels.h"

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kBlockUnits = 16;
inline constexpr std::int64_t kBlockFeatures = 16;

// Sums over pairs of examples of the products of kBlockUnits columns and kBlockFeatures features, in the order that
// dense_gradient (engine/cpu/dense_gradient/dense_gradient.h) writes. Only on a processor with avx512_bf16.
struct DenseGradientTask {
  std::int64_t pairs;
  const LaneUnit* input;
  std::int64_t input_row;  // distance between pairs
  const LaneUnit* output_gradient;
  std::int64_t output_gradient_row;
  float* target;
  std::int64_t target_row;  // distance between two pairs of features
};
void dense_gradient_of_block(const DenseGradientTask& task);

}  // namespace arbalest::engine::cpu
