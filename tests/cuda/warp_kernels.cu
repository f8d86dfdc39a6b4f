#include "tests/cuda/warp_kernels.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <type_traits>

#include "engine/cuda/kernels/tensor_core.h"
#include "tests/cuda/tiled_product.h"

namespace arbalest::tests {

namespace {

using engine::BFloat16;
using engine::cuda::BFloat16Pair;
using engine::cuda::round_to_tf32;
using engine::cuda::Tf32;

constexpr unsigned kLanes = 32;
constexpr unsigned kAll = 0xFFFF'FFFF;
constexpr int kColumns = 8;

__device__ float& element_of_sum(float* d, int i) {
  const int lane = static_cast<int>(threadIdx.x);
  return d[(lane / 4 + i / 2 * 8) * kColumns + lane % 4 * 2 + i % 2];
}

__global__ void multiply_tf32(const float* a, const float* b, float* d) {
  const int group = static_cast<int>(threadIdx.x) / 4;
  const int place = static_cast<int>(threadIdx.x) % 4;
  const auto left = [&](int row, int column) { return round_to_tf32(a[row * 8 + column]); };
  const Tf32 of_a[4] = {left(group, place), left(group + 8, place), left(group, place + 4), left(group + 8, place + 4)};
  const Tf32 of_b[2] = {round_to_tf32(b[place * kColumns + group]), round_to_tf32(b[(place + 4) * kColumns + group])};
  float sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = element_of_sum(d, i);
  engine::cuda::multiply_add_tf32(sums, of_a, of_b);
  for (int i = 0; i < 4; ++i) element_of_sum(d, i) = sums[i];
}

__global__ void multiply_bf16(const BFloat16* a, const BFloat16* b, float* d) {
  const int group = static_cast<int>(threadIdx.x) / 4;
  const int place = static_cast<int>(threadIdx.x) % 4 * 2;
  const auto left = [&](int row, int column) { return *reinterpret_cast<const BFloat16Pair*>(a + row * 16 + column); };
  const auto right = [&](int row) { return BFloat16Pair{b[row * kColumns + group], b[(row + 1) * kColumns + group]}; };
  const BFloat16Pair of_a[4] = {left(group, place), left(group + 8, place), left(group, place + 8),
                                left(group + 8, place + 8)};
  const BFloat16Pair of_b[2] = {right(place), right(place + 8)};
  float sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = element_of_sum(d, i);
  engine::cuda::multiply_add_bf16(sums, of_a, of_b);
  for (int i = 0; i < 4; ++i) element_of_sum(d, i) = sums[i];
}

__global__ void round_all(const float* values, std::uint32_t* tf32) {
  tf32[threadIdx.x] = round_to_tf32(values[threadIdx.x]).bits;
}

__global__ void shuffle_all(const int* values, int* results) {
  __shared__ int shared_values[kLanes];
  const unsigned lane = threadIdx.x;
  const int value = values[lane];
  results[0 * kLanes + lane] = __shfl_sync(kAll, value, 5);
  results[1 * kLanes + lane] = __shfl_sync(kAll, value, static_cast<int>(lane) + 3, 8);
  results[2 * kLanes + lane] = __shfl_down_sync(kAll, value, 3);
  results[3 * kLanes + lane] = __shfl_down_sync(kAll, value, 3, 8);
  results[4 * kLanes + lane] = __shfl_xor_sync(kAll, value, 21);
  results[5 * kLanes + lane] = __shfl_xor_sync(kAll, value, 9, 8);
  double sum = static_cast<double>(value) * value;
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(kAll, sum, bits);
  results[6 * kLanes + lane] = static_cast<int>(sum);
  shared_values[(lane + 1) % kLanes] = value;
  __syncwarp();
  results[7 * kLanes + lane] = shared_values[lane];
}

void check(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorName(result));
}

template <typename... Parameters>
void run_block(unsigned threads, std::size_t dynamic_bytes, void (*kernel)(Parameters...),
               std::type_identity_t<Parameters>... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = dynamic_bytes;
  config.stream = cudaStreamPerThread;
  check(cudaLaunchKernelEx(&config, kernel, arguments...));
  check(cudaStreamSynchronize(cudaStreamPerThread));
}

}  // namespace

void multiply_tf32_on_gpu(const float* a, const float* b, float* d) { run_block(kLanes, 0, multiply_tf32, a, b, d); }

void multiply_bf16_on_gpu(const BFloat16* a, const BFloat16* b, float* d) {
  run_block(kLanes, 0, multiply_bf16, a, b, d);
}

void round_on_gpu(const float* values, std::uint32_t* tf32) { run_block(kLanes, 0, round_all, values, tf32); }

void shuffle_on_gpu(const int* values, int* results) { run_block(kLanes, 0, shuffle_all, values, results); }

void multiply_tiles_on_gpu(const float* a, const float* b, float* d, int tiles, int place) {
  const auto kernel = multiply_tiles<LeftOut::kNothing>;
  const std::size_t bytes = static_cast<std::size_t>(place) + 2 * sizeof(ProductTile);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  run_block(kProductThreads, bytes, kernel, a, b, d, tiles, place);
}

}  // namespace arbalest::tests
