// A stream, and the replicas of a team for which work is enqueued on it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "engine/replica_memory.h"

namespace arbalest::engine::cuda {

struct TeamStream {
  cudaStream_t handle = nullptr;
  const ReplicaMemory* replicas = nullptr;  // null: there is one

  int count() const { return replicas == nullptr ? 1 : replicas->count; }
  std::ptrdiff_t stride_of(const void* address) const { return replicas == nullptr ? 0 : replicas->stride_of(address); }
};

// Calls enqueue(place) for each replica, for work that a library or the runtime enqueues for one replica at a time.
// place(address) is the replica's address.
template <typename Enqueue>
void for_each_replica(const TeamStream& stream, const Enqueue& enqueue) {
  for (int replica = 0; replica < stream.count(); ++replica) {
    enqueue([&stream, replica]<typename T>(T* address) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      return reinterpret_cast<T*>(at + static_cast<std::uintptr_t>(replica * stream.stride_of(address)));
    });
  }
}

}  // namespace arbalest::engine::cuda
