// What every call of the runtime has in common: the lock, work that runs meanwhile, injected and lasting errors, what
// a capture forbids, and the last error of the host thread.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

enum class InCapture { kLegal, kIllegal };

// Notes the error of a call for cudaGetLastError.
cudaError_t note(cudaError_t result);
// At the first call of the program that needs a device the runtime reads the environment.
void start_runtime();
// cudaSuccess where the machine has a driver new enough and a device.
cudaError_t machine_problem();

// What a call meets before it does anything: a machine without a device, a device that has failed, a capture.
cudaError_t check_call(const char* function, InCapture in_capture);

// A call of the runtime.
cudaError_t call(const char* function, InCapture in_capture, const std::function<cudaError_t(Thread&)>& body);

// A call of another library, which has one status for all that goes wrong with the device.
template <typename Status, typename Body>
Status library_call(const char* function, InCapture in_capture, Status device_error, const Body& body);

// The error that a test injected for this call of `function`, 0 if none. Counts the call.
int take_injected(const char* function);

// As a device would meanwhile: some steps of enqueued work, or none.
void take_random_steps();

// The stream that a handle means (0, cudaStreamLegacy and cudaStreamPerThread included); null, and a violation, if it
// is none.
CUstream_st* find_stream(cudaStream_t handle, const char* function);

// Gives `work` to a stream, or to the graph being captured from it.
cudaError_t enqueue(CUstream_st& stream, std::shared_ptr<const Work> work, const char* function);

// As enqueue(), of a library's: the first of `kind` by one handle may load code or allocate, so it must not be in a
// capture. `warm`: the kinds that this handle has had.
cudaError_t enqueue_of_library(CUstream_st& stream, std::shared_ptr<const Work> work, const char* function,
                               const std::string& kind, std::set<std::string>& warm);

// The captures that the calling host thread has begun and that forbid it unsafe calls.
bool thread_captures();
void invalidate_captures_of_thread();
// A call that waits for the whole device, as cudaDeviceSynchronize and the destruction of library handles do, while
// another host thread captures a stream of the device: a violation for each, which is of no use any more. Whether there
// were any.
bool spoils_captures_of_others(const char* function);
// An illegal call during the capture `capture`, which is of no use any more.
cudaError_t spoil(Capture& capture, cudaError_t error, const char* function, const char* reason);

template <typename Status, typename Body>
Status library_call(const char* function, InCapture in_capture, Status device_error, const Body& body) {
  const std::lock_guard lock(state().mutex);
  take_random_steps();
  const int injected = take_injected(function);
  if (injected != 0) return static_cast<Status>(injected);
  return check_call(function, in_capture) == cudaSuccess ? body() : device_error;
}

}  // namespace arbalest::tests::cuda_stand_in
