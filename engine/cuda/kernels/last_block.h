// Replaces a second kernel: the last block of a kernel to finish continues with the results of all blocks.
#pragma once

#include <cuda_runtime.h>

namespace arbalest::engine::cuda {

// Whether the calling block is the last of `blocks` blocks to call this with these `arrivals`. The last block sees the
// writes of the other blocks before their calls. `arrivals` is zero before the first call and after the last. All
// threads of the block must call this.
__device__ inline bool is_last_block(unsigned* arrivals, unsigned blocks) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(arrivals, 1U) + 1U == blocks;
    if (is_last) *arrivals = 0U;
  }
  __syncthreads();
  __threadfence();
  return is_last;
}

}  // namespace arbalest::engine::cuda
