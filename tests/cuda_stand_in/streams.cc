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

void append(CUstream_st& stream, std::shared_ptr<const Work> work) {
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
      state().handles[legacy].alive = false;  // nobody need destroy it
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
  return is_alive(handle, "stream", function) ? handle : nullptr;
}

namespace {

constexpr int kGreatestPriority = -5;

cudaError_t create(cudaStream_t* stream, unsigned flags, int priority, const char* function) {
  return call(function, InCapture::kLegal, [&](Thread& thread) {
    *stream = make_stream(thread.device, (flags & cudaStreamNonBlocking) == 0, priority);
    return cudaSuccess;
  });
}

// A stream that no capture includes: asking for its end is legal for no other.
cudaError_t find_idle_able(cudaStream_t handle, const char* function, CUstream_st** stream) {
  *stream = find_stream(handle, function);
  if (*stream == nullptr) return cudaErrorInvalidResourceHandle;
  if ((*stream)->capture == nullptr) return cudaSuccess;
  return spoil(*(*stream)->capture, cudaErrorStreamCaptureUnsupported, function, "on a stream that is being captured");
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", InCapture::kLegal, [&](Thread&) {
    *least = 0;
    *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags, 0, "cudaStreamCreateWithFlags");
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority, "cudaStreamCreateWithPriority");
}

// Returns at once; what the stream has been given still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", InCapture::kLegal, [&](Thread&) {
    if (!end_handle(stream, "stream", "cudaStreamDestroy")) return cudaErrorInvalidResourceHandle;
    if (stream->capture == nullptr) return cudaSuccess;
    return spoil(*stream->capture, cudaErrorStreamCaptureUnsupported, "cudaStreamDestroy", "during its capture");
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", InCapture::kIllegal, [&](Thread&) {
    CUstream_st* stream = nullptr;
    const cudaError_t problem = find_idle_able(handle, "cudaStreamSynchronize", &stream);
    return problem != cudaSuccess ? problem : drain(*stream, "cudaStreamSynchronize");
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", InCapture::kIllegal, [&](Thread&) {
    take_step();  // who asks again and again gets an answer
    CUstream_st* stream = nullptr;
    const cudaError_t problem = find_idle_able(handle, "cudaStreamQuery", &stream);
    if (problem != cudaSuccess) return problem;
    return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", InCapture::kIllegal, [&](Thread& thread) {
    for (std::size_t i = 0; i < state().streams.size(); ++i) {
      const CUstream_st* stream = state().streams[i];
      if (stream->device != thread.device) continue;
      const cudaError_t result = drain(*stream, "cudaDeviceSynchronize");
      if (result != cudaSuccess) return result;
    }
    return cudaSuccess;
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
