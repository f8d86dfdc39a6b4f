// Runs enqueued work, one step of one stream at a time. The stream is picked at random among those that can continue.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace arbalest::tests::cuda_stand_in {

// Returns false if no stream can continue.
bool take_step();
// Takes steps until done() returns true. Returns the failure of `device` if it has one. If no stream can continue,
// records a violation and returns cudaErrorLaunchTimeout. A stream that waits for another host thread or process can
// continue for two minutes.
cudaError_t run_until(const std::function<bool()>& done, int device, const char* function);
// Returns whether a test injected a failure for the next step on `device`. In that case the device has failed.
bool fails_now(int device);

}  // namespace arbalest::tests::cuda_stand_in
