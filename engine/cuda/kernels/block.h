// Helpers of our kernels: the grid-stride loop over elements, and sums over the threads of a block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/runtime/launch.h"

namespace arbalest::engine::cuda {

// for (i = first_element(); i < n; i += element_step()): neighboring threads take neighboring elements.
__device__ inline std::int64_t first_element() { return std::int64_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ inline std::int64_t element_step() { return std::int64_t{gridDim.x} * kThreads; }

// The sum of `value` over the block's threads, in every thread; always the same order of additions. All threads of the
// block must call it.
template <typename T>
__device__ T block_sum(T value) {
  __shared__ T sums[kThreads];
  const unsigned thread = threadIdx.x;
  sums[thread] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  __syncthreads();
  const T total = sums[0];
  __syncthreads();  // the next call writes the array again
  return total;
}

}  // namespace arbalest::engine::cuda
