// Host memory that stands for CUDA's. A host thread that reads or writes what stands for memory of a device ends the
// program with SIGSEGV, as it would on a machine with a GPU; only work of the device may. This needs a processor with
// memory protection keys (pkeys(7)); without them nothing is held back.
#pragma once

#include <cstddef>
#include <span>

namespace arbalest::tests::cuda_stand_in {

class Block {
 public:
  // Throws std::bad_alloc.
  Block(std::size_t bytes, bool of_device);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&&) = delete;

  std::span<unsigned char> bytes() const { return {data_, size_}; }

 private:
  unsigned char* data_;
  std::size_t size_;
};

// While it lives, the calling thread does what a device does, and may use its memory.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  unsigned before_ = 0;  // the thread's rights
};

}  // namespace arbalest::tests::cuda_stand_in
