// The common part of all CUDA runtime calls: the lock, work that runs in the meantime, injected and lasting errors,
// calls that a capture forbids, and the last error of the host thread.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

enum class InCapture { kLegal, kIllegal };

// Records the error of a call for cudaGetLastError.
cudaError_t note(cudaError_t result);
// Reads the environment, as the runtime does at the program's first call that needs a device.
void start_runtime();
// Returns cudaSuccess if the machine has a device and a driver that is new enough.
cudaError_t machine_problem();

// Checks that come before the work of a call: the machine has a device, the device has not failed, and no capture
// forbids the call.
cudaError_t check_call(const char* function, InCapture in_capture);

// Runs a call of the runtime.
cudaError_t call(const char* function, InCapture in_capture, const std::function<cudaError_t(Thread&)>& body);

// Runs a call of another library, which has one status for all device errors.
template <typename Status, typename Body>
Status library_call(const char* function, InCapture in_capture, Status device_error, const Body& body);

// Returns the error that a test injected for this call of `function`, or 0. Counts the call.
int take_injected(const char* function);

// Runs a random number of steps of enqueued work, as a device would do in the meantime.
void take_random_steps();

// Returns the stream of a handle, including 0, cudaStreamLegacy and cudaStreamPerThread. An invalid handle gives null
// and a violation.
CUstream_st* find_stream(cudaStream_t handle, const char* function);

// Adds `work` to a stream, or to the graph that is being captured from the stream.
cudaError_t enqueue(CUstream_st& stream, std::shared_ptr<const Work> work, const char* function);

// Like enqueue(), for work of a library. A handle's first work of a `kind` may load code or allocate memory, so it must
// not be in a capture. `warm`: the kinds that this handle has already run.
cudaError_t enqueue_of_library(CUstream_st& stream, std::shared_ptr<const Work> work, const char* function,
                               const std::string& kind, std::set<std::string>& warm);

// Captures that the calling host thread has begun. They forbid unsafe calls in this thread.
bool thread_captures();
void invalidate_captures_of_thread();
// For calls that wait for the whole device, such as cudaDeviceSynchronize and the destruction of library handles. If
// another host thread is capturing a stream of this device, its capture becomes invalid, which is a violation. Returns
// whether there was such a capture.
bool spoils_captures_of_others(const char* function);
// Records an illegal call during `capture`, which becomes invalid.
cudaError_t spoil(Capture& capture, cudaError_t error, const char* function, const char* reason);

template <typename Status, typename Body>
Status library_call(const char* function, InCapture in_capture, Status device_error, const Body& body) {
  const Lock lock;
  take_random_steps();
  const int injected = take_injected(function);
  if (injected != 0) return static_cast<Status>(injected);
  return check_call(function, in_capture) == cudaSuccess ? body() : device_error;
}

}  // namespace arbalest::tests::cuda_stand_in
