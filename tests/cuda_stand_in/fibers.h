// The threads of a block as fibers of one host thread.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace arbalest::tests::cuda_stand_in {

// Runs thread() for every thread of every block, one grid at a time. The threads of a block run one after another to
// their next barrier, in ascending or descending order. Blocks begin in a random order, and a few of them take turns at
// their barriers. A kernel that needs a specific order is wrong.
void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

}  // namespace arbalest::tests::cuda_stand_in
