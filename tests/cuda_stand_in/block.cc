#include "tests/cuda_stand_in/block.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

// Returns the protection key of device memory, or -1 if the processor has no keys. Threads cannot access memory with
// this key unless they get the right to it.
int device_key() {
  static const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  return key;
}

}  // namespace

bool finds_host_access() { return device_key() >= 0; }

Block::Block(std::size_t bytes, bool of_device) : size_(bytes) {
  void* data = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<unsigned char*>(data);
  if (of_device && finds_host_access()) pkey_mprotect(data_, size_, PROT_READ | PROT_WRITE, device_key());
}

Block::~Block() {
  if (data_ != nullptr) munmap(data_, size_);
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

DeviceAccess::DeviceAccess() {
  if (!finds_host_access()) return;
  before_ = static_cast<unsigned>(pkey_get(device_key()));
  pkey_set(device_key(), 0);
}

DeviceAccess::~DeviceAccess() {
  if (finds_host_access()) pkey_set(device_key(), before_);
}

}  // namespace arbalest::tests::cuda_stand_in
