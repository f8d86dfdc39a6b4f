// Copies from global to shared memory that a thread begins and waits for later (PTX ISA, cp.async).
#pragma once

#include <cuda_runtime.h>

namespace arbalest::engine::cuda {

// Begins to copy kBytes (4 or 16) bytes of global memory to shared memory. Both addresses must be multiples of kBytes.
// Until the thread has waited for the copy, nothing may read or write the target, and nothing may write the source.
template <int kBytes>
__device__ void copy_async(void* shared, const void* global) {
  static_assert(kBytes == 4 || kBytes == 16);
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (kBytes == 16) {  // only copies of 16 bytes can leave out the L1 cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(global))
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(__cvta_generic_to_global(global))
                 : "memory");
  }
}

// The copies that the thread has begun since its last commit become a group, which may be empty.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all groups of the thread but the last kPending. The thread itself then sees their copies. Other threads see
// them after the next barrier: __syncthreads(), or __syncwarp() for lanes of the same warp.
template <int kPending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace arbalest::engine::cuda
