#include "tests/cuda_stand_in/streams.h"

#include <cuda_runtime_api.h>

#include <array>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/executor.h"

namespace arbalest::tests::cuda_stand_in {

CUstream_st* make_stream(int device, bool blocking, int priority) {
  constexpr std::array kWeights = {1, 8, 64};
  auto* stream = make_handle<CUstream_st>("stream");
  stream->device = device;
  stream->blocking = blocking;
  stream->priority = priority;
  stream->weight = kWeights[random_below(kWeights.size())];
  state().streams.push_back(stream);
  return stream;
}

namespace {

// A graph takes as long as its nodes one after the other.
double microseconds_of(const Work& work) {
  if (work.nodes != nullptr) {
    double sum = 0.0;
    for (const Node& node : *work.nodes) sum += microseconds_of(*node.work);
    return sum;
  }
  const auto& times = state().microseconds;
  auto found = times.find(work.name);
  if (found == times.end()) found = times.find(work.name.substr(0, work.name.find(' ')));
  return found == times.end() ? kMicrosecondsOfWork : found->second;
}

}  // namespace

void append(CUstream_st& stream, std::shared_ptr<const Work> work) {
  stream.microseconds += microseconds_of(*work);
  stream.queue.push_back({std::move(work), nullptr});
  ++stream.enqueued;
}

cudaError_t drain(const CUstream_st& stream, const char* function) {
  return run_until([&] { return stream.queue.empty(); }, stream.device, function);
}

CUstream_st* find_stream(cudaStream_t handle, const char* function) {
  Thread& thread = this_thread();
  if (handle == nullptr || handle == cudaStreamLegacy) {
    CUstream_st*& legacy = state().devices[static_cast<std::size_t>(thread.device)].legacy_stream;
    if (legacy == nullptr) {
      legacy = make_stream(thread.device, true, 0);
      state().handles[legacy].alive = false;  // it need not be destroyed
    }
    return legacy;
  }
  if (handle == cudaStreamPerThread) {
    CUstream_st*& own = thread.own_streams[thread.device];
    if (own == nullptr) {
      own = make_stream(thread.device, true, 0);
      state().handles[own].alive = false;
    }
    return own;
  }
  if (!is_alive(handle, "stream", function)) return nullptr;
  if (handle->is_nccl_issuing) {
    violation(fmt::format("{}: on a stream on which NCCL is still issuing a call; poll ncclCommGetAsyncError first",
                          function));
  }
  return handle;
}

namespace {

constexpr int kGreatestPriority = -5;

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", InCapture::kLegal, [&](Thread&) {
    *least = 0;
    *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority", InCapture::kLegal, [&](Thread& thread) {
    *stream = make_stream(thread.device, (flags & cudaStreamNonBlocking) == 0, priority);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

// Returns at once. The stream's enqueued work still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", InCapture::kLegal, [&](Thread&) {
    if (!end_handle(stream, "stream", "cudaStreamDestroy")) return cudaErrorInvalidResourceHandle;
    if (stream->capture == nullptr) return cudaSuccess;
    return spoil(*stream->capture, cudaErrorStreamCaptureUnsupported, "cudaStreamDestroy", "during its capture");
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  constexpr const char* kName = "cudaStreamSynchronize";
  return call(kName, InCapture::kIllegal, [&](Thread&) {
    const CUstream_st* stream = find_stream(handle, kName);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture == nullptr) return drain(*stream, kName);
    return spoil(*stream->capture, cudaErrorStreamCaptureUnsupported, kName, "of a stream that is being captured");
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
