// Tests what the stand-in sees of kernels with asynchronous copies and dynamic shared memory.
#include <cmath>
#include <cstddef>

#include "tests/cuda/stand_in_rig.h"
#include "tests/cuda/tiled_product.h"

namespace arbalest::tests {
namespace {

constexpr std::size_t kKiB = 1024;

template <typename... Parameters, typename... Arguments>
cudaError_t run_with(std::size_t dynamic_bytes, unsigned blocks, unsigned threads, void (*kernel)(Parameters...),
                     Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = dynamic_bytes;
  config.stream = cudaStreamPerThread;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

// Keeps the block's number at the end of dynamic shared memory across a barrier.
__global__ void keep_in_dynamic_memory(float* first, float* numbers, int last) {
  auto* memory = engine::cuda::dynamic_shared_memory<float>();
  if (threadIdx.x == 0) first[blockIdx.x] = memory[0];
  __syncthreads();
  if (threadIdx.x == 0) memory[0] = memory[last] = static_cast<float>(blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 1) numbers[blockIdx.x] = memory[last];
}

template <int kBytes>
__global__ void copy_to(void* to, const char* from) {
  engine::cuda::copy_async<kBytes>(to, from);
}

template <int kBytes>
__global__ void copy_to_shared(int to, const char* from) {
  engine::cuda::copy_async<kBytes>(engine::cuda::dynamic_shared_memory<char>() + to, from);
  engine::cuda::commit_copies();
  engine::cuda::wait_for_copies<0>();
}

__global__ void copy_without_waiting(const float* from) {
  __shared__ float shared_value[1];
  engine::cuda::copy_async<4>(shared_value, from);
  engine::cuda::commit_copies();
}

// to[i] = what is in shared memory after all but i groups have ended. The second of three groups is empty.
__global__ void copy_in_groups(const float* from, float* to) {
  __shared__ float shared_values[2];
  engine::cuda::copy_async<4>(shared_values, from);
  engine::cuda::commit_copies();
  engine::cuda::commit_copies();
  engine::cuda::copy_async<4>(shared_values + 1, from + 1);
  to[0] = shared_values[0];
  engine::cuda::wait_for_copies<2>();  // 2 groups were committed
  to[1] = shared_values[0];
  engine::cuda::wait_for_copies<1>();
  to[2] = shared_values[0];
  engine::cuda::wait_for_copies<0>();
  to[3] = shared_values[1];  // not committed
  engine::cuda::commit_copies();
  engine::cuda::wait_for_copies<0>();
  to[4] = shared_values[1];
}

// Wrong: changes the source of a copy before it has ended.
__global__ void change_source(float* values) {
  __shared__ float shared_value[1];
  engine::cuda::copy_async<4>(shared_value, values);
  engine::cuda::commit_copies();
  values[0] = 2;
  engine::cuda::wait_for_copies<0>();
  values[1] = shared_value[0];
}

// Whether the kernel computes the product of whole numbers.
template <LeftOut left_out>
bool multiplies(std::uint64_t seed) {
  constexpr std::size_t kTiles = 4;
  constexpr std::size_t kDepth = kTiles * kProductDepth;
  cuda_stand_in::reset({}, seed);
  std::vector<float> a;
  std::vector<float> b;
  for (std::size_t i = 0; i < kProductRows * kDepth; ++i) a.push_back(static_cast<float>(i * 7 % 19) - 9.0F);
  for (std::size_t i = 0; i < kDepth * kProductColumns; ++i) b.push_back(static_cast<float>(i * 5 % 23) - 11.0F);
  std::vector<float> expected(kProductRows * kProductColumns);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t k = 0; k < kDepth; ++k) {
      expected[i] += a[i / kProductColumns * kDepth + k] * b[k * kProductColumns + i % kProductColumns];
    }
  }
  float* a_there = allocate<float>(a.size());
  float* b_there = allocate<float>(b.size());
  float* d = allocate<float>(expected.size());
  upload(a_there, a);
  upload(b_there, b);
  must(run_with(2 * sizeof(ProductTile), 1, kProductThreads, multiply_tiles<left_out>, a_there, b_there, d, kTiles, 0));
  return download(d, expected.size()) == expected;
}

template <LeftOut left_out>
int wrong_products() {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) wrong += multiplies<left_out>(seed) ? 0 : 1;
  return wrong;
}

}  // namespace

TEST_CASE("stand-in: each missing wait or barrier of a tiled product is revealed") {
  CHECK(wrong_products<LeftOut::kNothing>() == 0);
  CHECK(violations().empty());
  CHECK(wrong_products<LeftOut::kWait>() == 8);
  CHECK(wrong_products<LeftOut::kCommit>() == 8);
  CHECK_THAT(violations(), ContainsSubstring("a thread ends before it has waited for its copies"));
  CHECK(wrong_products<LeftOut::kBarrierBeforeReading>() > 0);
  CHECK(wrong_products<LeftOut::kBarrierBeforeWriting>() > 0);
}

TEST_CASE("stand-in: a copy's target holds NaN until its group has been waited for") {
  cuda_stand_in::reset();
  float* from = allocate<float>(2);
  float* to = allocate<float>(5);
  upload(from, {3.0F, 4.0F});
  must(run(copy_in_groups, 1, 1, cudaStreamPerThread, from, to));
  const std::vector<float> found = download(to, 5);
  CHECK(std::isnan(found[0]));
  CHECK(std::isnan(found[1]));
  CHECK(found[2] == 3.0F);
  CHECK(std::isnan(found[3]));
  CHECK(found[4] == 4.0F);
  CHECK(violations().empty());
}

TEST_CASE("stand-in: a copy may read its source at any time until its end") {
  int first = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* values = allocate<float>(2);
    upload(values, {1.0F, 0.0F});
    must(run(change_source, 1, 1, cudaStreamPerThread, values));
    const float found = download(values, 2)[1];
    CHECK((found == 1.0F || found == 2.0F));
    first += found == 1.0F ? 1 : 0;
  }
  CHECK(first > 0);
  CHECK(first < 16);
}

TEST_CASE("stand-in: a copy between wrong places is refused") {
  cuda_stand_in::reset();
  char* from = allocate<char>(64);
  must(run_with(64, 1, 1, copy_to_shared<16>, 48, from + 48));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(violations().empty());
  const auto violations_after = [&](cudaError_t result) {
    must(result);
    must(cudaStreamSynchronize(cudaStreamPerThread));
    std::string found = violations();
    cuda_stand_in::reset();
    from = allocate<char>(64);
    return found;
  };
  CHECK_THAT(violations_after(run_with(64, 1, 1, copy_to_shared<16>, 8, from)), ContainsSubstring("is not aligned"));
  CHECK_THAT(violations_after(run_with(64, 1, 1, copy_to_shared<16>, 0, from + 8)),
             ContainsSubstring("is not aligned"));
  CHECK_THAT(violations_after(run_with(64, 1, 1, copy_to_shared<4>, 64, from)),
             ContainsSubstring("does not write shared memory of the block"));
  CHECK_THAT(violations_after(run_with(0, 1, 1, copy_to<4>, from, from)),
             ContainsSubstring("does not write shared memory of the block"));
  CHECK_THAT(violations_after(run_with(64, 1, 1, copy_to_shared<4>, 0, from + 64)),
             ContainsSubstring("no memory of CUDA's"));
  CHECK_THAT(violations_after(run_with(0, 1, 1, copy_without_waiting, reinterpret_cast<const float*>(from))),
             ContainsSubstring("a thread ends before it has waited for its copies"));
}

TEST_CASE("stand-in: blocks have dynamic shared memory of their own, which begins as NaN") {
  constexpr int kBlocks = 20;
  cuda_stand_in::reset();
  float* first = allocate<float>(kBlocks);
  float* numbers = allocate<float>(kBlocks);
  must(run_with(400, kBlocks, 2, keep_in_dynamic_memory, first, numbers, 99));
  for (const float value : download(first, kBlocks)) CHECK(std::isnan(value));
  const std::vector<float> kept = download(numbers, kBlocks);
  for (std::size_t block = 0; block < kBlocks; ++block) CHECK(kept[block] == static_cast<float>(block));
  CHECK(violations().empty());

  must(run_with(396, 1, 2, keep_in_dynamic_memory, first, numbers, 99));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(violations() == "a kernel: writes behind its dynamic shared memory\n");
}

TEST_CASE("stand-in: a kernel without dynamic shared memory cannot use it") {
  cuda_stand_in::reset();
  const char* from = allocate<char>(64);
  must(run_with(0, 1, 1, copy_to_shared<4>, 0, from));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK_THAT(violations(), ContainsSubstring("but its launch has none"));
}

TEST_CASE("stand-in: more dynamic shared memory than 48 KiB must be allowed, for each kernel and device") {
  cuda_stand_in::reset({.devices = 2});
  const char* from = allocate<char>(64);
  const auto set = [](void (*kernel)(int, const char*), std::size_t bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  };
  const auto launch = [&](std::size_t bytes) { return run_with(bytes, 1, 1, copy_to_shared<4>, 0, from); };
  must(launch(48 * kKiB));
  must(set(copy_to_shared<16>, 64 * kKiB));  // another kernel
  CHECK(violations().empty());
  CHECK(launch(48 * kKiB + 1) == cudaErrorInvalidValue);
  CHECK(violations() ==
        "cudaLaunchKernelEx: 49153 bytes of dynamic shared memory, where this kernel may have 49152 on device 0; "
        "cudaFuncSetAttribute must allow more first\n");
  CHECK(set(copy_to_shared<4>, 227 * kKiB + 1) == cudaErrorInvalidValue);
  must(set(copy_to_shared<4>, 227 * kKiB));
  must(launch(227 * kKiB));
  CHECK(launch(227 * kKiB + 1) == cudaErrorInvalidValue);
  CHECK_THAT(violations(), ContainsSubstring("may have 232448 on device 0, and no block can have as much"));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  must(cudaSetDevice(1));
  CHECK(launch(64 * kKiB) == cudaErrorInvalidValue);
  CHECK_THAT(violations(), ContainsSubstring("may have 49152 on device 1"));
}

TEST_CASE("stand-in: the most shared memory depends on the compute capability") {
  const auto most = [](int major, int minor) {
    cuda_stand_in::reset({.major = major, .minor = minor});
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, 0));
    const auto bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
    constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    must(cudaFuncSetAttribute(copy_to_shared<4>, kAttribute, bytes));
    CHECK(cudaFuncSetAttribute(copy_to_shared<4>, kAttribute, bytes + 1) == cudaErrorInvalidValue);
    return static_cast<std::size_t>(bytes) / kKiB;
  };
  CHECK(most(9, 0) == 227);
  CHECK(most(8, 0) == 163);
  CHECK(most(8, 6) == 99);
  CHECK(cudaFuncSetAttribute(copy_to_shared<4>, cudaFuncAttributePreferredSharedMemoryCarveout, 50) ==
        cudaErrorNotSupported);
  CHECK(violations() == "cudaFuncSetAttribute: of an attribute that the stand-in does not model\n");
}

}  // namespace arbalest::tests
