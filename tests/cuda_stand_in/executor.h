// Runs enqueued work: one step of one stream at a time, picked at random among those that can go on.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace arbalest::tests::cuda_stand_in {

// False: nothing can go on.
bool take_step();
// Runs until done() holds. Returns the failure of `device` if it has one; if nothing can go on, a violation, and
// cudaErrorLaunchTimeout.
cudaError_t run_until(const std::function<bool()>& done, int device, const char* function);
// Whether the step about to be made on `device` is one that a test asked to fail; then the device has failed.
bool fails_now(int device);

}  // namespace arbalest::tests::cuda_stand_in
