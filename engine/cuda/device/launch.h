// How kernels of ours are launched, and the usual shapes of their grids.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "engine/cuda/device/check.h"

namespace arbalest::engine::cuda {

inline constexpr int kThreads = 256;  // of a block

// Enqueues kernel(arguments...) with `blocks` blocks of kThreads threads.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t blocks, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  ARBALEST_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// Blocks for a loop over `elements` in steps of the whole grid; at most kMaxBlocks, so that partial results by block
// have a fixed number of places.
inline constexpr std::int64_t kMaxBlocks = 1024;
inline std::int64_t blocks_for(std::int64_t elements) {
  return std::clamp<std::int64_t>((elements + kThreads - 1) / kThreads, 1, kMaxBlocks);
}

}  // namespace arbalest::engine::cuda
