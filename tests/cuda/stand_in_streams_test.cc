// Tests the stand-in's streams, events, memory and errors.
#include <unistd.h>

#include <array>
#include <set>

#include "tests/cuda/stand_in_rig.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

// 1 * 2 + 3 = 5 or (1 + 3) * 2 = 8, depending on the order in which two streams run.
float result_of_two_streams(std::uint64_t seed, bool ordered) {
  cuda_stand_in::reset({}, seed);
  float* data = allocate<float>(1);
  upload(data, {1.0F});
  const cudaStream_t first = make_stream();
  const cudaStream_t second = make_stream();
  const cudaEvent_t event = make_event();
  must(run(apply, 1, 1, first, data, 2, 0));
  must(cudaEventRecord(event, first));
  if (ordered) must(cudaStreamWaitEvent(second, event, 0));
  must(run(apply, 1, 1, second, data, 1, 3));
  must(cudaStreamSynchronize(first));
  must(cudaStreamSynchronize(second));
  return download(data, 1)[0];
}

__global__ void write_behind(float* data, int elements) { data[elements] = 0; }

}  // namespace

TEST_CASE("stand-in: streams run in any order that their events allow") {
  std::set<float> unordered;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    unordered.insert(result_of_two_streams(seed, false));
    CHECK(result_of_two_streams(seed, true) == 5.0F);
    CHECK(violations().empty());
  }
  CHECK(unordered == std::set<float>{5.0F, 8.0F});
}

TEST_CASE("stand-in: enqueued work runs late, and repeated queries complete it") {
  int unfinished = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* data = allocate<float>(1);
    upload(data, {0.0F});
    const cudaStream_t stream = make_stream();
    const cudaEvent_t event = make_event();
    for (int i = 0; i < 10; ++i) must(run(apply, 1, 1, stream, data, 1, 1));
    must(cudaEventRecord(event, stream));
    const cudaError_t first = cudaEventQuery(event);
    CHECK(cudaGetLastError() == first);  // also if it is "not ready"
    unfinished += first == cudaErrorNotReady ? 1 : 0;
    int questions = 0;
    while (cudaEventQuery(event) == cudaErrorNotReady) ++questions;
    CHECK(questions <= 10);
    CHECK(download(data, 1)[0] == 10.0F);
  }
  CHECK(unfinished > 0);
}

TEST_CASE("stand-in: waiting for an event that was never recorded is a violation") {
  cuda_stand_in::reset();
  must(cudaStreamWaitEvent(make_stream(), make_event(), 0));
  CHECK_THAT(violations(), ContainsSubstring("cudaStreamWaitEvent: for an event that was never recorded"));
  cuda_stand_in::reset();
  must(cudaEventSynchronize(make_event()));
  CHECK_THAT(violations(), ContainsSubstring("cudaEventSynchronize: of an event that was never recorded"));
}

TEST_CASE("stand-in: uses of destroyed and of unknown streams and events are violations") {
  cuda_stand_in::reset({.devices = 2});
  const cudaStream_t stream = make_stream();
  const cudaEvent_t event = make_event();
  must(cudaSetDevice(1));
  CHECK(cudaEventRecord(event, make_stream()) == cudaErrorInvalidResourceHandle);
  must(cudaStreamDestroy(stream));
  must(cudaEventDestroy(event));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventQuery(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  CHECK_THAT(violations(), ContainsSubstring("cudaEventRecord: an event of device 0 on a stream of device 1"));
  CHECK_THAT(violations(), ContainsSubstring("cudaStreamSynchronize: uses a stream that was destroyed"));
  CHECK_THAT(violations(), ContainsSubstring("cudaEventQuery: uses a event that was destroyed"));
}

TEST_CASE("stand-in: memory must be freed once, when it is unused, and with intact guards") {
  cuda_stand_in::reset();
  float* data = allocate<float>(10);
  must(cudaMemsetAsync(data, 0, 40, cudaStreamPerThread));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  must(cudaFree(data));
  CHECK(violations().empty());
  CHECK(cudaFree(data) == cudaErrorInvalidValue);
  CHECK_THAT(violations(), ContainsSubstring("cudaFree: of an address that was not allocated so"));

  cuda_stand_in::reset();
  data = allocate<float>(10);
  must(run(write_behind, 1, 1, cudaStreamPerThread, data, 10));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  must(cudaFree(data));
  CHECK_THAT(violations(), ContainsSubstring("something wrote before or after these 40 bytes"));

  int found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    data = allocate<float>(10);
    must(cudaMemsetAsync(data, 0, 40, make_stream()));
    must(cudaFree(data));
    found += violations().find("cudaFree: of memory that enqueued work still uses (cudaMemsetAsync)") == 0 ? 1 : 0;
  }
  CHECK(found > 0);
}

TEST_CASE("stand-in: the host cannot access device memory") {
  if (!cuda_stand_in::finds_host_access()) skip_test("this processor has no memory protection keys");
  cuda_stand_in::reset();
  float* data = allocate<float>(1);
  upload(data, {3.0F});
  // A system call accesses memory with the thread's rights. It returns an error where the thread itself would be
  // killed.
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  CHECK(write(pipe_ends[1], data, sizeof(float)) == -1);
  CHECK(write(pipe_ends[1], "1234", 4) == 4);
  CHECK(read(pipe_ends[0], data, sizeof(float)) == -1);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  CHECK(download(data, 1)[0] == 3.0F);
}

TEST_CASE("stand-in: copies must stay inside their memory and have the right direction") {
  cuda_stand_in::reset();
  float* data = allocate<float>(10);
  std::vector<float> host(20);
  const cudaStream_t stream = make_stream();
  CHECK(cudaMemcpyAsync(data, host.data(), 44, cudaMemcpyDefault, stream) == cudaErrorInvalidValue);
  CHECK_THAT(violations(), ContainsSubstring("of 44 bytes where only 40 are left"));
  CHECK(cudaMemsetAsync(data + 5, 0, 24, stream) == cudaErrorInvalidValue);
  CHECK_THAT(violations(), ContainsSubstring("of 24 bytes where only 20 are left"));
  CHECK(cudaMemcpyAsync(host.data(), data, 40, cudaMemcpyHostToHost, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(data, host.data(), 40, cudaMemcpyDeviceToDevice, stream) == cudaErrorInvalidValue);
  CHECK_THAT(violations(), ContainsSubstring("from memory of the device to memory of the host, and its kind says"));
}

TEST_CASE("stand-in: pageable memory is read before a copy returns and written before it returns") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* data = allocate<float>(1);
    const cudaStream_t stream = make_stream();
    float value = 3;
    must(cudaMemcpyAsync(data, &value, sizeof(value), cudaMemcpyDefault, stream));
    value = 4;
    must(cudaMemcpyAsync(&value, data, sizeof(value), cudaMemcpyDefault, stream));
    CHECK(value == 3);
  }
}

TEST_CASE("stand-in: leaked resources are listed") {
  cuda_stand_in::reset();
  static_cast<void>(make_stream());
  float* data = allocate<float>(1);
  CHECK_THROWS_WITH(cuda_stand_in::require_clean(), ContainsSubstring("1 x stream never given back") &&
                                                        ContainsSubstring("1 x piece of device memory"));
  CHECK_NOTHROW(cuda_stand_in::require_clean(false));
  must(cudaFree(data));
  CHECK(cuda_stand_in::leaks().size() == 1);
}

TEST_CASE("stand-in: injected errors occur at the requested calls") {
  cuda_stand_in::reset();
  cuda_stand_in::fail_next("cudaMallocAsync", cudaErrorMemoryAllocation, 1);
  void* data = nullptr;
  must(cudaMallocAsync(&data, 4, cudaStreamPerThread));
  void* refused = nullptr;
  CHECK(cudaMallocAsync(&refused, 4, cudaStreamPerThread) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  must(cudaMallocAsync(&refused, 4, cudaStreamPerThread));

  cuda_stand_in::reset({.memory = 1000});
  must(cudaMalloc(&data, 600));
  CHECK(cudaMalloc(&refused, 600) == cudaErrorMemoryAllocation);
  must(cudaFree(data));
  must(cudaMalloc(&refused, 600));
}

TEST_CASE("stand-in: a kernel that fails makes its device fail") {
  cuda_stand_in::reset({.devices = 2});
  float* data = allocate<float>(1);
  const cudaStream_t stream = make_stream();
  cuda_stand_in::fail_execution(cudaErrorIllegalAddress, 1);
  must(run(apply, 1, 1, stream, data, 1, 1));
  static_cast<void>(run(apply, 1, 1, stream, data, 1, 1));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(run(apply, 1, 1, stream, data, 1, 1) == cudaErrorIllegalAddress);
  must(cudaSetDevice(1));
  static_cast<void>(download(allocate<float>(1), 1));
}

TEST_CASE("stand-in: machines without a driver, with an old one, or without a device") {
  int count = -1;
  int version = -1;
  cuda_stand_in::reset({.driver_version = 0});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  must(cudaDriverGetVersion(&version));
  CHECK(version == 0);
  cuda_stand_in::reset({.driver_version = 11040});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  CHECK(cudaSetDevice(0) == cudaErrorInsufficientDriver);
  cuda_stand_in::reset({.devices = 0});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  cuda_stand_in::reset({.devices = 2, .major = 7, .minor = 5});
  must(cudaGetDeviceCount(&count));
  CHECK(count == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, 1));
  CHECK(properties.major == 7);
}

}  // namespace arbalest::tests
