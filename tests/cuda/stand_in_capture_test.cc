// Tests captures and graphs of the stand-in.
#include "tests/cuda/stand_in_rig.h"

#include <functional>
#include <thread>

#include <cublas_v2.h>
#include <cudnn.h>

namespace arbalest::tests {
namespace {

void begin(cudaStream_t stream) { must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)); }

cudaGraphExec_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  must(cudaGraphInstantiate(&executable, graph, 0));
  must(cudaGraphDestroy(graph));
  return executable;
}

}  // namespace

TEST_CASE("stand-in: a captured graph runs once for each launch") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* data = allocate<float>(1);
    upload(data, {1.0F});
    const cudaStream_t stream = make_stream();
    begin(stream);
    must(run(apply, 1, 1, stream, data, 2, 0));
    must(run(apply, 1, 1, stream, data, 1, 3));
    const cudaGraphExec_t graph = end(stream);
    CHECK(download(data, 1)[0] == 1.0F);
    must(cudaGraphUpload(graph, stream));
    for (int i = 0; i < 3; ++i) must(cudaGraphLaunch(graph, stream));
    must(cudaStreamSynchronize(stream));
    CHECK(download(data, 1)[0] == 29.0F);  // 1, 5, 13, 29
    must(cudaGraphExecDestroy(graph));
    must(cudaStreamDestroy(stream));
    must(cudaFree(data));
    CHECK_NOTHROW(cuda_stand_in::require_clean());
  }
}

TEST_CASE("stand-in: calls that a capture forbids are refused and invalidate the capture") {
  struct Forbidden {
    cudaError_t error;
    std::function<cudaError_t(cudaStream_t stream, cudaStream_t other, float* data)> call;
  };
  float pageable = 0;
  void* memory = nullptr;
  const std::vector<Forbidden> calls = {
      {cudaErrorStreamCaptureUnsupported, [&](auto, auto, auto) { return cudaMalloc(&memory, 4); }},
      {cudaErrorStreamCaptureUnsupported, [&](auto s, auto, auto) { return cudaMallocAsync(&memory, 4, s); }},
      {cudaErrorStreamCaptureUnsupported, [&](auto, auto, auto) { return cudaHostAlloc(&memory, 4, 0); }},
      {cudaErrorStreamCaptureUnsupported, [](auto, auto, auto data) { return cudaFree(data); }},
      {cudaErrorStreamCaptureUnsupported, [](auto stream, auto, auto) { return cudaStreamSynchronize(stream); }},
      {cudaErrorStreamCaptureUnsupported, [](auto, auto other, auto) { return cudaStreamSynchronize(other); }},
      {cudaErrorStreamCaptureUnsupported, [](auto, auto, auto) { return cudaEventQuery(make_event()); }},
      {cudaErrorStreamCaptureUnsupported,
       [&](auto stream, auto, auto data) { return cudaMemcpyAsync(data, &pageable, 4, cudaMemcpyDefault, stream); }},
      {cudaErrorStreamCaptureImplicit,
       [](auto, auto, auto data) { return cudaMemsetAsync(data, 0, 4, cudaStreamLegacy); }},
      {cudaErrorStreamCaptureIsolation,
       [](auto stream, auto other, auto) {
         const cudaEvent_t event = make_event();
         must(cudaEventRecord(event, other));
         return cudaStreamWaitEvent(stream, event, 0);
       }},
  };
  for (const Forbidden& forbidden : calls) {
    cuda_stand_in::reset();
    float* data = allocate<float>(1);
    const cudaStream_t stream = make_stream();
    const cudaStream_t other = make_stream();
    begin(stream);
    CHECK(forbidden.call(stream, other, data) == forbidden.error);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    CHECK(!violations().empty());
  }
}

TEST_CASE("stand-in: other streams join a capture by events, and must be joined before its end") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* data = allocate<float>(2);
    upload(data, {1.0F, 1.0F});
    const cudaStream_t stream = make_stream();
    const cudaStream_t side = make_stream();
    const cudaEvent_t fork = make_event();
    const cudaEvent_t join = make_event();
    begin(stream);
    must(run(apply, 1, 1, stream, data, 2, 0));
    must(cudaEventRecord(fork, stream));
    must(cudaStreamWaitEvent(side, fork, 0));
    must(run(apply, 1, 1, side, data, 1, 3));
    must(run(apply, 1, 1, stream, data + 1, 10, 0));
    must(cudaEventRecord(join, side));
    must(cudaStreamWaitEvent(stream, join, 0));
    must(run(apply, 1, 1, stream, data, 7, 0));
    const cudaGraphExec_t graph = end(stream);
    must(cudaGraphLaunch(graph, stream));
    must(cudaStreamSynchronize(stream));
    CHECK(download(data, 2) == std::vector<float>{35.0F, 10.0F});
    CHECK(violations().empty());
  }
  const cudaStream_t stream = make_stream();
  const cudaStream_t side = make_stream();
  const cudaEvent_t fork = make_event();
  float* data = allocate<float>(1);
  begin(stream);
  must(cudaEventRecord(fork, stream));
  must(cudaStreamWaitEvent(side, fork, 0));
  must(run(apply, 1, 1, side, data, 1, 3));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(cudaStreamWaitEvent(stream, fork, 0) == cudaErrorCapturedEvent);
}

TEST_CASE("stand-in: a running graph must not be destroyed, and its memory must not be freed") {
  int destroyed = 0;
  int freed = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    cuda_stand_in::reset({}, seed);
    float* data = allocate<float>(1);
    const cudaStream_t stream = make_stream();
    begin(stream);
    for (int i = 0; i < 20; ++i) must(run(apply, 1, 1, stream, data, 1, 1));
    const cudaGraphExec_t graph = end(stream);
    must(cudaGraphLaunch(graph, stream));
    must(cudaFree(data));
    freed += violations().find("(cudaGraphLaunch)") != std::string::npos ? 1 : 0;
    must(cudaGraphExecDestroy(graph));
    destroyed += violations().find("cudaGraphExecDestroy: of a graph that was launched") != std::string::npos ? 1 : 0;
    must(cudaStreamSynchronize(stream));
  }
  CHECK(freed > 0);
  CHECK(destroyed > 0);
}

TEST_CASE("stand-in: waiting for a whole device invalidates another thread's capture there") {
  const auto in_another_thread = [](const auto& call) { std::thread(call).join(); };
  for (const std::string function : {"cudaDeviceSynchronize", "cudnnDestroy", "cublasDestroy"}) {
    CAPTURE(function);
    for (const int device_of_capture : {0, 1}) {
      cuda_stand_in::reset({.devices = 2});
      cudnnHandle_t cudnn = nullptr;
      cublasHandle_t cublas = nullptr;
      REQUIRE(cudnnCreate(&cudnn) == CUDNN_STATUS_SUCCESS);
      REQUIRE(cublasCreate(&cublas) == CUBLAS_STATUS_SUCCESS);
      must(cudaSetDevice(device_of_capture));
      const cudaStream_t stream = make_stream();
      begin(stream);
      in_another_thread([&] {  // its current device is 0
        if (function == "cudaDeviceSynchronize") static_cast<void>(cudaDeviceSynchronize());
        if (function == "cudnnDestroy") static_cast<void>(cudnnDestroy(cudnn));
        if (function == "cublasDestroy") static_cast<void>(cublasDestroy(cublas));
      });
      cudaGraph_t graph = nullptr;
      const bool spoiled = device_of_capture == 0;
      CHECK(cudaStreamEndCapture(stream, &graph) == (spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
      CHECK((violations().find(function + ": waits for a device of which another thread") != std::string::npos) ==
            spoiled);
    }
  }
}

}  // namespace arbalest::tests
