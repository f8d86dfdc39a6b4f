// Events: points of streams and of captures.
#include <cuda_runtime_api.h>

#include <algorithm>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/executor.h"
#include "tests/cuda_stand_in/streams.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr std::size_t kStepsOfQuestion = 32;  // a GPU completes much work between two queries

bool has_passed(const CUevent_st& event) { return event.position.stream->completed >= event.position.number; }

// Checks that the host may query or wait for the event.
cudaError_t check_askable(cudaEvent_t event, const char* function) {
  if (!is_alive(event, "event", function)) return cudaErrorInvalidResourceHandle;
  if (event->capture != nullptr) {
    return spoil(*event->capture, cudaErrorCapturedEvent, function, "of an event that was recorded in a capture");
  }
  if (!event->recorded) violation(fmt::format("{}: of an event that was never recorded", function));
  return cudaSuccess;
}

// Orders the stream's next work after the event, in the same graph.
cudaError_t wait_in_capture(CUstream_st& stream, CUevent_st& event) {
  Capture* capture = event.capture;
  constexpr const char* kFunction = "cudaStreamWaitEvent";
  if (capture == nullptr) {
    return spoil(*stream.capture, cudaErrorStreamCaptureIsolation, kFunction,
                 "in a capture, for an event recorded outside of it");
  }
  if (!capture->active) {
    violation("cudaStreamWaitEvent: for an event recorded in a capture that has ended");
    return cudaErrorCapturedEvent;
  }
  if (stream.capture != nullptr && stream.capture != capture) {
    return spoil(*stream.capture, cudaErrorStreamCaptureMerge, kFunction, "for an event of another capture");
  }
  stream.capture = capture;
  stream.last_nodes.insert(stream.last_nodes.end(), event.nodes.begin(), event.nodes.end());
  std::ranges::sort(stream.last_nodes);
  stream.last_nodes.erase(std::ranges::unique(stream.last_nodes).begin(), stream.last_nodes.end());
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", InCapture::kLegal, [&](Thread& thread) {
    if (flags != cudaEventDisableTiming) {
      violation(
          "cudaEventCreateWithFlags: an event that takes the time or interrupts the host makes each record slower; "
          "cudaEventCreate makes those that measure");
    }
    *event = make_handle<CUevent_st>("event");
    (*event)->device = thread.device;
    (*event)->is_timed = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call("cudaEventCreate", InCapture::kLegal, [&](Thread& thread) {
    *event = make_handle<CUevent_st>("event");
    (*event)->device = thread.device;
    (*event)->is_timed = true;
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  constexpr const char* kName = "cudaEventElapsedTime";
  return call(kName, InCapture::kIllegal, [&](Thread&) {
    for (const cudaEvent_t event : {start, end}) {
      if (!is_alive(event, "event", kName) || !event->is_timed || !event->recorded) {
        return cudaErrorInvalidResourceHandle;
      }
      if (!has_passed(*event)) return cudaErrorNotReady;
    }
    *milliseconds = static_cast<float>(1e-3 * (end->microseconds - start->microseconds));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", InCapture::kLegal, [&](Thread&) {
    return end_handle(event, "event", "cudaEventDestroy") ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return call("cudaEventRecord", InCapture::kLegal, [&](Thread&) {
    CUstream_st* stream = find_stream(handle, "cudaEventRecord");
    if (stream == nullptr || !is_alive(event, "event", "cudaEventRecord")) return cudaErrorInvalidResourceHandle;
    if (event->device != stream->device) {
      violation(fmt::format("cudaEventRecord: an event of device {} on a stream of device {}", event->device,
                            stream->device));
      return cudaErrorInvalidResourceHandle;
    }
    event->recorded = true;
    event->capture = stream->capture;
    event->nodes = stream->last_nodes;
    if (stream->capture == nullptr) event->position = {stream, stream->enqueued};
    event->microseconds = stream->microseconds;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", InCapture::kLegal, [&](Thread&) {
    CUstream_st* stream = find_stream(handle, "cudaStreamWaitEvent");
    if (stream == nullptr || !is_alive(event, "event", "cudaStreamWaitEvent")) return cudaErrorInvalidResourceHandle;
    if (!event->recorded) {
      violation("cudaStreamWaitEvent: for an event that was never recorded, so it waits for nothing");
      return cudaSuccess;
    }
    if (stream->capture != nullptr || event->capture != nullptr) return wait_in_capture(*stream, *event);
    return enqueue(*stream, make_wait(event->position), "cudaStreamWaitEvent");
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", InCapture::kIllegal, [&](Thread&) {
    const cudaError_t problem = check_askable(event, "cudaEventQuery");
    if (problem != cudaSuccess || !event->recorded) return problem;
    // Each query runs some steps, so repeated queries come to an end.
    for (std::size_t steps = 1 + random_below(kStepsOfQuestion); steps > 0 && take_step(); --steps) {
    }
    const cudaError_t failure = state().devices[static_cast<std::size_t>(event->device)].failure;
    if (failure != cudaSuccess) return failure;
    return has_passed(*event) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", InCapture::kIllegal, [&](Thread&) {
    const cudaError_t problem = check_askable(event, "cudaEventSynchronize");
    if (problem != cudaSuccess || !event->recorded) return problem;
    return run_until([&] { return has_passed(*event); }, event->device, "cudaEventSynchronize");
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
