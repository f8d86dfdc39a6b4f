#include "engine/cuda/runtime/report_position.h"

#include "engine/cuda/runtime/check.h"

namespace arbalest::engine::cuda {

namespace {

constexpr unsigned kWarp = 32;

// Launched with one block.
__global__ void report(volatile std::uint64_t* passed, std::uint64_t position, const Words words) {
  for (std::uint32_t i = threadIdx.x; i < words.count; i += kWarp) words.to[i] = words.from[i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();  // after the barrier, it covers the writes of all threads
  *passed = position;
}

}  // namespace

void report_position(std::uint64_t* passed, std::uint64_t position, const Words& words, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kWarp);
  config.stream = stream;
  ARBALEST_CUDA(cudaLaunchKernelEx(&config, report, static_cast<volatile std::uint64_t*>(passed), position, words));
}

}  // namespace arbalest::engine::cuda
