// The threads of a block as fibers of one host thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "tests/cuda_stand_in/async_copies.h"

namespace arbalest::tests::cuda_stand_in {

// Runs thread() for every thread of every block, one grid at a time. The threads of a block run one after another to
// their next barrier, in ascending or descending order. Blocks begin in a random order, and a few of them take turns at
// their barriers. Warps whose lanes have met run on in a random order, some far ahead of others. A kernel that needs a
// specific order is wrong.
//   dynamic_bytes: dynamic shared memory of each block
void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread, std::size_t dynamic_bytes);

// For the running thread of a kernel:
AsyncCopies& copies_of_thread();
bool is_in_shared_memory(const void* address, std::size_t bytes);

}  // namespace arbalest::tests::cuda_stand_in
