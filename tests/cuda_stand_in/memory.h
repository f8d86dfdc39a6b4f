// Device memory and pinned host memory.
#pragma once

#include <cstddef>

#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

struct Place {
  const Allocation* allocation = nullptr;  // null: host memory that CUDA does not know
  std::size_t bytes_after = 0;             // from the address to the end of the allocation
};
Place find_memory(const void* address);

// Takes driver memory for a library's handle or a graph. Returns false if the device has not enough memory outside its
// pool.
bool take_elsewhere(int device, std::size_t bytes);
void give_back_elsewhere(int device, std::size_t bytes);

// Returns whether work on `device` may access [address, address + bytes). If not, records a violation.
bool check_device_range(const void* address, std::size_t bytes, int device, const char* function);

}  // namespace arbalest::tests::cuda_stand_in
