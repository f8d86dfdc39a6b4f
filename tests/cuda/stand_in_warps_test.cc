// Tests how the stand-in runs the lanes of a warp, and what it refuses.
#include <bit>
#include <cmath>
#include <cstddef>

#include "engine/cuda/kernels/tensor_core.h"
#include "tests/cuda/stand_in_rig.h"

namespace arbalest::tests {
namespace {

constexpr unsigned kAll = 0xFFFF'FFFF;

// Wrong: a lane may read before the next lane has written.
template <bool waits>
__global__ void read_of_next_lane(int* values) {
  __shared__ int shared_values[64];
  shared_values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if constexpr (waits) __syncwarp();
  values[threadIdx.x] = shared_values[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32];
}

// Wrong: assumes that the first warp is ahead of the second.
__global__ void read_of_first_warp(int* values) {
  __shared__ int shared_values[32];
  __syncwarp();
  if (threadIdx.x < 32) shared_values[threadIdx.x] = 7;
  __syncwarp();
  if (threadIdx.x >= 32) values[threadIdx.x - 32] = shared_values[threadIdx.x - 32];
}

// sums[block] = sum of the block's 96 values. Warps and blocks take turns between the parts.
__global__ void add_by_warps(const float* values, float* sums) {
  __shared__ float shared_sums[3];
  float sum = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(kAll, sum, distance);
  if (threadIdx.x % 32 == 0) shared_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = shared_sums[0] + shared_sums[1] + shared_sums[2];
}

__global__ void half_of_warp_waits() {
  if (threadIdx.x % 32 < 16) __syncwarp();
}

__global__ void warp_waits_in_two_places() {
  if (threadIdx.x % 2 == 0) {
    __syncwarp();
  } else {
    __syncwarp();
  }
}

__global__ void half_of_warp_waits_for_block() {
  if (threadIdx.x % 32 < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

__global__ void half_of_warp_shuffles(float* values) {
  values[threadIdx.x] = threadIdx.x < 16 ? __shfl_sync(kAll, 1.0F, 0) : 0.0F;
}

__global__ void shuffle_in_half(float* values) { values[threadIdx.x] = __shfl_xor_sync(0xFFFFU, 1.0F, 1); }

__global__ void wait_in_half() { __syncwarp(0xFFFFU); }

__global__ void shuffle_by(int* values, unsigned distance, int width) {
  values[threadIdx.x] = __shfl_down_sync(kAll, static_cast<int>(threadIdx.x), distance, width);
}

__global__ void wait_for_warp(int* values) {
  __syncwarp();
  values[threadIdx.x] = 1;
}

__global__ void multiply_in_half(float* d) {
  const engine::cuda::Tf32 a[4] = {};
  const engine::cuda::Tf32 b[2] = {};
  float sums[4] = {};
  if (threadIdx.x < 16) engine::cuda::multiply_add_tf32(sums, a, b);
  d[threadIdx.x] = sums[0];
}

__global__ void multiply_number(float* d, float number) {
  const engine::cuda::Tf32 factor{std::bit_cast<std::uint32_t>(number)};
  const engine::cuda::Tf32 a[4] = {factor, factor, factor, factor};
  const engine::cuda::Tf32 b[2] = {factor, factor};
  float sums[4] = {};
  engine::cuda::multiply_add_tf32(sums, a, b);
  d[threadIdx.x] = sums[0];
}

std::vector<int> read_of_neighbors(void (*kernel)(int*), std::uint64_t seed) {
  cuda_stand_in::reset({}, seed);
  int* values = allocate<int>(64);
  must(run(kernel, 1, 64, cudaStreamPerThread, values));
  return download(values, 64);
}

// Runs `kernel` on a new stand-in and returns its violations.
template <typename... Parameters, typename... Arguments>
std::string violations_of(void (*kernel)(Parameters...), unsigned threads, Arguments... arguments) {
  must(run(kernel, 2, threads, cudaStreamPerThread, arguments...));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  return violations();
}

}  // namespace

TEST_CASE("stand-in: a missing __syncwarp is revealed") {
  std::vector<int> right(64);
  for (int thread = 0; thread < 64; ++thread)
    right[static_cast<std::size_t>(thread)] = thread / 32 * 32 + (thread + 1) % 32;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CHECK(read_of_neighbors(read_of_next_lane<true>, seed) == right);
    CHECK(violations().empty());
    CHECK(read_of_neighbors(read_of_next_lane<false>, seed) != right);
  }
}

TEST_CASE("stand-in: warps of a block are not in step") {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    cuda_stand_in::reset({}, seed);
    int* values = allocate<int>(32);
    must(run(read_of_first_warp, 1, 64, cudaStreamPerThread, values));
    wrong += download(values, 32)[31] == 7 ? 0 : 1;
  }
  CHECK(wrong > 0);
  CHECK(wrong < 16);
}

TEST_CASE("stand-in: shuffles, barriers and shared memory of several blocks work together") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_stand_in::reset({}, seed);
    std::vector<float> values;
    std::vector<float> expected(5);
    for (std::size_t i = 0; i < 96 * expected.size(); ++i) {
      values.push_back(static_cast<float>(i % 37));
      expected[i / 96] += values.back();
    }
    float* there = allocate<float>(values.size());
    float* sums = allocate<float>(expected.size());
    upload(there, values);
    must(run(add_by_warps, 5, 96, cudaStreamPerThread, there, sums));
    CHECK(download(sums, 5) == expected);
    CHECK(violations().empty());
  }
}

TEST_CASE("stand-in: an operation of a warp that not all its lanes reach is a violation") {
  cuda_stand_in::reset();
  CHECK_THAT(violations_of(half_of_warp_waits, 64),
             ContainsSubstring("not all lanes of a warp come to the __syncwarp"));
  cuda_stand_in::reset();
  CHECK_THAT(violations_of(warp_waits_in_two_places, 64),
             ContainsSubstring("not all lanes of a warp come to the __syncwarp"));
  cuda_stand_in::reset();
  CHECK_THAT(violations_of(half_of_warp_waits_for_block, 64),
             ContainsSubstring("not all lanes of a warp come to the __syncwarp"));
  cuda_stand_in::reset();
  float* values = allocate<float>(32);
  CHECK_THAT(violations_of(half_of_warp_shuffles, 32, values),
             ContainsSubstring("not all lanes of a warp come to the __shfl_sync"));
  CHECK(std::isnan(download(values, 1)[0]));
  cuda_stand_in::reset();
  values = allocate<float>(32);
  CHECK_THAT(violations_of(multiply_in_half, 32, values),
             ContainsSubstring("not all lanes of a warp come to the multiply_add_tf32"));
  CHECK(std::isnan(download(values, 1)[0]));
}

TEST_CASE("stand-in: parts of warps are refused") {
  cuda_stand_in::reset();
  CHECK_THAT(violations_of(wait_in_half, 32),
             ContainsSubstring("has the mask 0x0000ffff; the stand-in only has whole warps"));
  cuda_stand_in::reset();
  float* values = allocate<float>(32);
  CHECK_THAT(violations_of(shuffle_in_half, 32, values),
             ContainsSubstring("has the mask 0x0000ffff; the stand-in only has whole warps"));
  CHECK(std::isnan(download(values, 1)[0]));
}

TEST_CASE("stand-in: a block whose last warp has fewer lanes may wait there, and no more") {
  cuda_stand_in::reset();
  int* values = allocate<int>(48);
  CHECK(violations_of(wait_for_warp, 48, values).empty());
  CHECK(download(values, 48) == std::vector(48, 1));
  CHECK_THAT(violations_of(shuffle_by, 48, values, 1, 32), ContainsSubstring("of a warp that has only 16 lanes"));
}

TEST_CASE("stand-in: a shuffle over an impossible distance or width is a violation") {
  for (const auto& [distance, width] : {std::pair{32U, 32}, {1U, 24}, {1U, 64}, {1U, 0}}) {
    cuda_stand_in::reset();
    int* values = allocate<int>(32);
    CHECK_THAT(
        violations_of(shuffle_by, 32, values, distance, width),
        ContainsSubstring("has the distance " + std::to_string(distance) + " and the width " + std::to_string(width)));
  }
}

TEST_CASE("stand-in: a factor that was not rounded to TF32 is a violation") {
  cuda_stand_in::reset();
  float* d = allocate<float>(32);
  CHECK(violations_of(multiply_number, 32, d, 1.5F).empty());
  CHECK(download(d, 1)[0] == 8 * 2.25F);
  CHECK(violations_of(multiply_number, 32, d, std::nanf("")).empty());
  CHECK(std::isnan(download(d, 1)[0]));
  CHECK_THAT(violations_of(multiply_number, 32, d, 1.0F + 0x1p-11F), ContainsSubstring("was not rounded to TF32"));
}

}  // namespace arbalest::tests
