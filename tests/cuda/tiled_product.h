// A kernel that multiplies matrices as tiled kernels do: tiles come into dynamic shared memory by asynchronous copies,
// two of them in turns, and tensor cores multiply them.
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/kernels/async_copy.h"
#include "engine/cuda/kernels/dynamic_shared_memory.h"
#include "engine/cuda/kernels/tensor_core.h"

namespace arbalest::tests {

// What a faulty variant of the kernel leaves out.
enum class LeftOut { kNothing, kCommit, kWait, kBarrierBeforeReading, kBarrierBeforeWriting };

inline constexpr int kProductRows = 32;
inline constexpr int kProductColumns = 8;
inline constexpr int kProductDepth = 8;  // of a tile
inline constexpr unsigned kProductThreads = 64;

struct ProductTile {
  float a[kProductRows][kProductDepth];
  float b[kProductDepth][kProductColumns];
};

// d [32, 8] = a [32, 8 tiles] b [8 tiles, 8], row by row in memory. The launch has one block of kProductThreads
// threads.
//   place: bytes of dynamic shared memory before the tiles, a multiple of 16
template <LeftOut left_out>
__global__ void multiply_tiles(const float* a, const float* b, float* d, int tiles, int place) {
  auto* of_stage = reinterpret_cast<ProductTile*>(engine::cuda::dynamic_shared_memory<unsigned char>() + place);
  const int thread = static_cast<int>(threadIdx.x);
  const auto fetch = [&](int tile) {
    ProductTile& to = of_stage[tile % 2];
    const int row = thread / 2;
    const int column = thread % 2 * 4;
    engine::cuda::copy_async<16>(&to.a[row][column], a + (row * tiles + tile) * kProductDepth + column);
    engine::cuda::copy_async<4>(&to.b[0][0] + thread, b + tile * kProductDepth * kProductColumns + thread);
    if constexpr (left_out != LeftOut::kCommit) engine::cuda::commit_copies();
  };
  const int warp = thread / 32;
  const int group = thread % 32 / 4;
  const int at = thread % 4;
  float sums[4] = {};
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      fetch(tile + 1);
      if constexpr (left_out != LeftOut::kWait) engine::cuda::wait_for_copies<1>();
    } else {
      engine::cuda::wait_for_copies<0>();
    }
    if constexpr (left_out != LeftOut::kBarrierBeforeReading) __syncthreads();
    const ProductTile& from = of_stage[tile % 2];
    const float(*rows)[kProductDepth] = from.a + warp * 16;
    const engine::cuda::Tf32 left[4] = {
        engine::cuda::round_to_tf32(rows[group][at]), engine::cuda::round_to_tf32(rows[group + 8][at]),
        engine::cuda::round_to_tf32(rows[group][at + 4]), engine::cuda::round_to_tf32(rows[group + 8][at + 4])};
    const engine::cuda::Tf32 right[2] = {engine::cuda::round_to_tf32(from.b[at][group]),
                                         engine::cuda::round_to_tf32(from.b[at + 4][group])};
    engine::cuda::multiply_add_tf32(sums, left, right);
    if constexpr (left_out != LeftOut::kBarrierBeforeWriting) __syncthreads();
  }
  for (int i = 0; i < 4; ++i) d[(warp * 16 + group + i / 2 * 8) * kProductColumns + at * 2 + i % 2] = sums[i];
}

}  // namespace arbalest::tests
