// Host memory that simulates CUDA's memory. Only work of a device may access simulated device memory. A host thread
// that reads or writes it ends the program with SIGSEGV, as on a machine with a GPU. This needs a processor with memory
// protection keys (pkeys(7)). Without them host threads are not stopped.
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

// During its lifetime the calling thread acts as a device and may access device memory.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  unsigned before_ = 0;  // the thread's earlier rights
};

}  // namespace arbalest::tests::cuda_stand_in
