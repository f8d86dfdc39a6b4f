// Memory of the current device and of the host, zeroed. Both throw ErrorKind::kOutOfMemory and leave everything as it
// was; both block the host.
#pragma once

#include <cstddef>

#include "engine/buffer.h"

namespace arbalest::engine::cuda {

// From the device's pool, which takes memory from the driver when it needs some and keeps what is given back.
Buffer allocate_device(std::size_t bytes);
// Pinned, at the same address for host and devices (unified addressing).
Buffer allocate_mapped(std::size_t bytes);
// The current device's pool keeps what is freed. Once per device.
void keep_freed_memory(int ordinal);
// The current device's pool gives the driver what it keeps for nobody: libraries and graphs cannot have it else.
void release_pool(int ordinal);
// Bytes of the current device that the driver has.
std::size_t driver_memory();
// Bytes of the current device that the driver has, or its pool keeps, for allocate_device.
std::size_t free_device_memory(int ordinal);

}  // namespace arbalest::engine::cuda
