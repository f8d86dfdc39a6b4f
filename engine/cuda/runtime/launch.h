// Launches our kernels, and chooses the usual grid sizes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "engine/cuda/runtime/check.h"

namespace arbalest::engine::cuda {

inline constexpr int kThreads = 256;  // per block

// Enqueues kernel(arguments...) with `blocks` blocks of kThreads threads.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t blocks, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  ARBALEST_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// Number of blocks for a grid-stride loop over `elements`. The limit kMaxBlocks bounds the number of per-block partial
// results.
inline constexpr std::int64_t kMaxBlocks = 1024;
inline std::int64_t blocks_for(std::int64_t elements) {
  return std::clamp<std::int64_t>((elements + kThreads - 1) / kThreads, 1, kMaxBlocks);
}

}  // namespace arbalest::engine::cuda
