// Shared memory whose size the launch sets.
#pragma once

#include <cuda_runtime.h>

namespace arbalest::engine::cuda {

// Returns the block's dynamic shared memory, aligned to 128 bytes: cudaLaunchConfig_t::dynamicSmemBytes bytes, with
// undefined contents when the block begins. More than 48 KiB must be allowed by cudaFuncSetAttribute
// (cudaFuncAttributeMaxDynamicSharedMemorySize), once for each kernel and device.
template <typename T>
__device__ T* dynamic_shared_memory() {
  extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}

}  // namespace arbalest::engine::cuda
