// The loop of engine/cpu/dense_gradient.h.
#pragma once

#include <cstdint>

#include "engine/cpu/lane_kernels.h"

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kBlockUnits = 16;
inline constexpr std::int64_t kBlockFeatures = 16;

// Sums over pairs of examples of the products of kBlockUnits columns and kBlockFeatures, as dense_gradient
// (engine/cpu/dense_gradient.h) writes them. Only on a processor that has avx512_bf16.
struct DenseGradientTask {
  std::int64_t pairs;
  const LaneUnit* input;
  std::int64_t input_row;  // from pair to pair
  const LaneUnit* output_gradient;
  std::int64_t output_gradient_row;
  float* target;
  std::int64_t target_row;  // from two features to the next two
};
void dense_gradient_of_block(const DenseGradientTask& task);

}  // namespace arbalest::engine::cpu
