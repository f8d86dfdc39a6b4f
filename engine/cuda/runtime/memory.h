// Allocates device memory and pinned host memory. The allocate functions block the host, and return an empty Buffer for
// 0 bytes. If memory is short, they throw ErrorKind::kOutOfMemory and change nothing.
#pragma once

#include <cstddef>

#include "engine/buffer.h"

namespace arbalest::engine::cuda {

// Allocates from the current device's memory pool (cudaMallocAsync). The pool grows on demand and keeps freed memory
// for reuse. The memory is zero.
Buffer allocate_device(std::size_t bytes);
// As allocate_device, but the memory holds anything: for libraries, which write it before they read it.
Buffer allocate_workspace(std::size_t bytes);
// Allocates pinned host memory, which is zero. The host and all devices use the same address for it (unified
// addressing).
Buffer allocate_mapped(std::size_t bytes);
// Makes the pool of device `ordinal` keep freed memory for reuse. Call once per device.
void keep_freed_memory(int ordinal);
// Returns the unused memory of device `ordinal`'s pool to the driver. Libraries and graphs allocate from the driver,
// not from the pool.
void trim_pool(int ordinal);
// Free bytes of the current device as the driver reports them; the pool's unused memory is not included.
std::size_t driver_free_memory();
// Bytes that allocate_device could use: free memory of the driver plus unused memory of the pool. `ordinal` must be the
// current device.
std::size_t free_device_memory(int ordinal);

}  // namespace arbalest::engine::cuda
