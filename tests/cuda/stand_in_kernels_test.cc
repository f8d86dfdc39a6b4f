// Tests how the stand-in runs kernels.
#include <array>
#include <cmath>
#include <cstddef>
#include <set>

#include "tests/cuda/stand_in_rig.h"

namespace arbalest::tests {
namespace {

constexpr unsigned kThreads = 256;

// sums[block] = sum of the block's part of values
__global__ void add_by_tree(const float* values, float* sums, std::int64_t count) {
  __shared__ float shared_partial[kThreads];
  float sum = 0;
  for (auto i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += std::int64_t{gridDim.x} * kThreads) {
    sum += values[i];
  }
  shared_partial[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) shared_partial[threadIdx.x] += shared_partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = shared_partial[0];
}

// Wrong: a thread may write before the previous thread has read. Running threads in ascending order would hide this.
__global__ void shift_without_barrier(int* values) {
  const int value = values[threadIdx.x + 1 < blockDim.x ? threadIdx.x + 1 : threadIdx.x];
  values[threadIdx.x] = value;
}

__global__ void shift(int* values) {
  const int value = values[threadIdx.x + 1 < blockDim.x ? threadIdx.x + 1 : threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = value;
}

__global__ void count_threads(int* counter, unsigned* larger) {
  atomicAdd(counter, 1);
  if (atomicAdd(larger, 2U) % 2 != 0) atomicAdd(counter, 1000);
}

__global__ void half_waits() {
  if (threadIdx.x < blockDim.x / 2) __syncthreads();
}

__global__ void wait_in_two_places() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

// Wrong: assumes that shared memory has zeros, or the values of the block before.
__global__ void read_before_writing(float* values) {
  __shared__ float shared_value[1];
  __syncthreads();
  if (threadIdx.x != 0) return;
  values[blockIdx.x] = shared_value[0];
  shared_value[0] = 1;
}

// Keeps each block's number in shared memory across a barrier.
__global__ void keep_in_shared_memory(unsigned* numbers) {
  __shared__ unsigned shared_number[1];
  if (threadIdx.x == 0) shared_number[0] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 1) numbers[blockIdx.x] = shared_number[0];
}

// Wrong: assumes that blocks run in order.
__global__ void count_blocks(unsigned* places, unsigned* counter) { places[blockIdx.x] = atomicAdd(counter, 1U); }

// Wrong: assumes that no other block runs between a block's barriers.
__global__ void look_over_barrier(unsigned* seen, unsigned* counter) {
  if (threadIdx.x == 0) seen[blockIdx.x] = atomicAdd(counter, 1U);
  __syncthreads();
  if (threadIdx.x == 0) seen[blockIdx.x] = atomicAdd(counter, 1U) - seen[blockIdx.x];
}

struct Pointers {
  float* first;
  std::int64_t number;
  float* second;
};
__global__ void use_pointers(Pointers pointers) { *pointers.second = *pointers.first; }

struct Padded {
  float* values;
  std::uint32_t number;  // four bytes of padding follow
};

std::vector<int> shifted(void (*kernel)(int*), std::uint64_t seed) {
  cuda_stand_in::reset({}, seed);
  int* values = allocate<int>(4);
  upload(values, {10, 11, 12, 13});
  must(run(kernel, 1, 4, cudaStreamPerThread, values));
  return download(values, 4);
}

}  // namespace

TEST_CASE("stand-in: a block's threads meet at barriers and share memory") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_stand_in::reset({}, seed);
    constexpr std::size_t kCount = 5000;
    constexpr unsigned kBlocks = 3;
    std::vector<float> values(kCount);
    float expected = 0;
    for (std::size_t i = 0; i < kCount; ++i) expected += values[i] = static_cast<float>(i % 7);
    float* device_values = allocate<float>(kCount);
    float* sums = allocate<float>(kBlocks);
    upload(device_values, values);
    must(run(add_by_tree, kBlocks, kThreads, cudaStreamPerThread, device_values, sums, kCount));
    const std::vector<float> found = download(sums, kBlocks);
    CHECK(found[0] + found[1] + found[2] == expected);
    CHECK(found[0] != found[2]);
    must(cudaFree(device_values));
    must(cudaFree(sums));
    CHECK_NOTHROW(cuda_stand_in::require_clean());
  }
}

TEST_CASE("stand-in: some order of the threads reveals a missing barrier") {
  const std::vector<int> right{11, 12, 13, 13};
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CHECK(shifted(shift, seed) == right);
    wrong += shifted(shift_without_barrier, seed) == right ? 0 : 1;
  }
  CHECK(wrong > 0);
  CHECK(wrong < 8);
}

TEST_CASE("stand-in: a barrier that not all threads of a block reach is a violation") {
  for (void (*kernel)() : {half_waits, wait_in_two_places}) {
    cuda_stand_in::reset();
    must(run(kernel, 2, 64, cudaStreamPerThread));
    must(cudaStreamSynchronize(cudaStreamPerThread));
    CHECK_THAT(violations(), ContainsSubstring("not all threads of a block come to the __syncthreads"));
  }
}

TEST_CASE("stand-in: atomic additions return the old value") {
  cuda_stand_in::reset();
  int* counter = allocate<int>(1);
  auto* larger = allocate<unsigned>(1);
  upload(counter, {0});
  upload(larger, {0U});
  must(run(count_threads, 4, 100, cudaStreamPerThread, counter, larger));
  CHECK(download(counter, 1)[0] == 400);
  CHECK(download(larger, 1)[0] == 800);
}

TEST_CASE("stand-in: a kernel's arguments must be memory of its device") {
  float value = 0;
  cuda_stand_in::reset();
  must(run(apply, 1, 1, cudaStreamPerThread, &value, 1, 1));
  CHECK_THAT(violations(), ContainsSubstring("cudaLaunchKernelEx: of an address that is no memory of CUDA's"));

  cuda_stand_in::reset();
  must(run(use_pointers, 1, 1, cudaStreamPerThread, Pointers{allocate<float>(1), 7, &value}));
  CHECK_THAT(violations(), ContainsSubstring("cudaLaunchKernelEx: of an address that is no memory of CUDA's"));

  cuda_stand_in::reset({.devices = 2});
  float* first = allocate<float>(1);
  must(cudaSetDevice(1));
  must(run(apply, 1, 1, cudaStreamPerThread, first, 1, 1));
  CHECK_THAT(violations(), ContainsSubstring("on device 1 of memory of device 0"));
}

TEST_CASE("stand-in: bytes in the padding of a kernel's arguments are not taken for an address") {
  static_assert(sizeof(Padded) == 2 * sizeof(void*));
  alignas(Padded) std::array<std::byte, sizeof(Padded)> bytes{};
  bytes.fill(std::byte{0x55});
  std::vector<cuda_stand_in::Argument> found;
  cuda_stand_in::find_pointers(*reinterpret_cast<const Padded*>(bytes.data()), found);
  REQUIRE(found.size() == 2);
  CHECK(reinterpret_cast<std::uintptr_t>(found[0].pointer) == 0x5555'5555'5555'5555);
  CHECK(reinterpret_cast<std::uintptr_t>(found[1].pointer) == 0x5555'5555);
}

TEST_CASE("stand-in: memory of pointers inside a kernel's arguments counts as in use") {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* first = allocate<float>(1);
    float* second = allocate<float>(1);
    must(run(use_pointers, 1, 1, make_stream(), Pointers{first, 7, second}));
    must(cudaFree(second));
    found += violations() == "cudaFree: of memory that enqueued work still uses (cudaLaunchKernelEx)\n" ? 1 : 0;
  }
  CHECK(found > 0);
}

TEST_CASE("stand-in: a kernel is refused on a stream of another device, and with an impossible grid") {
  cuda_stand_in::reset({.devices = 2});
  float* data = allocate<float>(1);
  const cudaStream_t stream = make_stream();
  CHECK(run(apply, 1, 1025, stream, data, 1, 1) == cudaErrorInvalidConfiguration);
  CHECK(run(apply, 0, 1, stream, data, 1, 1) == cudaErrorInvalidConfiguration);
  CHECK(violations().empty());
  must(cudaSetDevice(1));
  CHECK(run(apply, 1, 1, stream, data, 1, 1) == cudaErrorInvalidResourceHandle);
  CHECK_THAT(violations(), ContainsSubstring("on a stream of device 0 while device 1 is current"));
}

TEST_CASE("stand-in: launch attributes and cooperative grids are refused") {
  cuda_stand_in::reset();
  float* data = allocate<float>(1);
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = cudaStreamPerThread;
  config.attrs = &attribute;
  config.numAttrs = 1;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  CHECK(cudaLaunchKernelEx(&config, apply, data, 1.0F, 1.0F) == cudaErrorNotSupported);
  CHECK(violations() == "cudaLaunchKernelEx: with launch attributes, which the stand-in does not model\n");

  cuda_stand_in::reset();
  data = allocate<float>(1);
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  CHECK(cudaLaunchKernelEx(&config, apply, data, 1.0F, 1.0F) == cudaErrorNotSupported);
  CHECK(violations() == "cudaLaunchKernelEx: with a cooperative grid, which the stand-in does not model\n");

  cuda_stand_in::reset();
  CHECK(cudaLaunchCooperativeKernel(apply, dim3(1), dim3(1), nullptr) == cudaErrorNotSupported);
  CHECK(violations() == "cudaLaunchCooperativeKernel: a cooperative grid, which the stand-in does not model\n");
}

TEST_CASE("stand-in: unwritten shared memory contains NaN") {
  cuda_stand_in::reset();
  float* values = allocate<float>(3);
  must(run(read_before_writing, 3, 2, cudaStreamPerThread, values));
  for (const float value : download(values, 3)) CHECK(std::isnan(value));
  unsigned* numbers = allocate<unsigned>(20);
  must(run(keep_in_shared_memory, 20, 2, cudaStreamPerThread, numbers));
  const std::vector<unsigned> kept = download(numbers, 20);
  for (unsigned block = 0; block < 20; ++block) CHECK(kept[block] == block);
}

TEST_CASE("stand-in: blocks run in any order, and also between the barriers of other blocks") {
  std::set<std::vector<unsigned>> orders;
  bool undisturbed = false;
  bool disturbed = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    unsigned* counter = allocate<unsigned>(2);
    upload(counter, {0U, 0U});
    unsigned* places = allocate<unsigned>(6);
    must(run(count_blocks, 6, 2, cudaStreamPerThread, places, counter));
    orders.insert(download(places, 6));
    must(run(look_over_barrier, 6, 2, cudaStreamPerThread, places, counter + 1));
    for (const unsigned distance : download(places, 6)) (distance == 1 ? undisturbed : disturbed) = true;
  }
  CHECK(orders.size() == 10);
  CHECK(undisturbed);
  CHECK(disturbed);
}

}  // namespace arbalest::tests
