// Memory of devices and pinned memory of the host.
#pragma once

#include <cstddef>

#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

struct Place {
  const Allocation* allocation = nullptr;  // none: memory of the host that CUDA does not know
  std::size_t bytes_after = 0;             // of the allocation, from the address on
};
Place find_memory(const void* address);

// Memory that the driver takes for a library's handle or a graph. False if the device has no such memory left that its
// pool does not keep.
bool take_elsewhere(int device, std::size_t bytes);
void give_back_elsewhere(int device, std::size_t bytes);

// A violation unless [address, address + bytes) is memory that work on `device` may touch.
bool check_device_range(const void* address, std::size_t bytes, int device, const char* function);

}  // namespace arbalest::tests::cuda_stand_in
