// Kernels of one warp, and a tiled product, for tests that run on a GPU and on the stand-in. All pointers are device
// memory. Each function waits for its kernel, and throws std::runtime_error if it fails.
#pragma once

#include <cstdint>

#include "engine/base/bfloat16.h"

namespace arbalest::tests {

// d [16, 8] += a [16, 8] b [8, 8], row by row in memory, as factors of TF32
void multiply_tf32_on_gpu(const float* a, const float* b, float* d);
// d [16, 8] += a [16, 16] b [16, 8]
void multiply_bf16_on_gpu(const engine::BFloat16* a, const engine::BFloat16* b, float* d);
// tf32[i] = bits of values[i], rounded. 32 of them.
void round_on_gpu(const float* values, std::uint32_t* tf32);

inline constexpr int kShuffles = 8;
// results [kShuffles, 32]: what each lane gets of `values` [32] by
//   0, 1: __shfl_sync from lane 5; from lane + 3 in parts of 8 lanes
//   2, 3: __shfl_down_sync by 3; by 3 in parts of 8 lanes
//   4, 5: __shfl_xor_sync by 21; by 9 in parts of 8 lanes
//   6: the sum of the squares of all values as double
//   7: shared memory that the lane before (of lane 0: the last) wrote before __syncwarp
void shuffle_on_gpu(const int* values, int* results);

// The product of tiled_product.h, with `place` bytes of dynamic shared memory before its tiles.
void multiply_tiles_on_gpu(const float* a, const float* b, float* d, int tiles, int place);

}  // namespace arbalest::tests
