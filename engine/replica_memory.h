// A ReplicaMemory tells where the replicas of a team lie. One stream enqueues their work together, each task once for
// all. Work is recorded with the addresses of replica 0 (Stream::begin_recording). An address within a region stands
// for the same place in every replica's part of it. Any other address, such as that of the central model, is the same
// for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arbalest::engine {

// The part of replica r: [stride] bytes at first + r * stride.
struct ReplicaRegion {
  const void* first = nullptr;
  std::size_t stride = 0;
};

struct ReplicaMemory {
  int count = 1;
  std::vector<ReplicaRegion> regions = {};  // disjoint

  // Bytes from an address of replica r to the one of replica r + 1; 0: all replicas have the same.
  std::ptrdiff_t stride_of(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const ReplicaRegion& region : regions) {
      const auto first = reinterpret_cast<std::uintptr_t>(region.first);
      if (at >= first && at < first + region.stride) return static_cast<std::ptrdiff_t>(region.stride);
    }
    return 0;
  }
};

}  // namespace arbalest::engine
