// Memory of a device for all replicas of a team: the same number of bytes for each, one after the other.
#pragma once

#include <cstddef>

#include "engine/base/alignment.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/replica_memory.h"

namespace arbalest::learners {

class Slab {
 public:
  // Bytes from one replica's part to the next one's. Rounded up, so that every part is aligned as the first one is.
  static constexpr std::size_t stride(std::size_t bytes) { return engine::aligned(bytes); }

  Slab() = default;
  // Zeros. Throws kOutOfMemory.
  Slab(engine::Device& device, std::size_t bytes, int replicas)
      : stride_(stride(bytes)), buffer_(device.allocate(static_cast<std::size_t>(replicas) * stride_)) {}

  // The part of a replica; null if the slab was not allocated.
  template <typename T>
  T* of(int replica) const noexcept {
    if (buffer_.data() == nullptr) return nullptr;
    return reinterpret_cast<T*>(buffer_.as<std::byte>() + static_cast<std::size_t>(replica) * stride_);
  }
  std::size_t stride() const noexcept { return stride_; }
  engine::ReplicaRegion region() const noexcept { return {buffer_.data(), stride_}; }

 private:
  std::size_t stride_ = 0;
  engine::Buffer buffer_;
};

}  // namespace arbalest::learners
