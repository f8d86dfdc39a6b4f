// Reads and writes numbers that other threads read and write at the same time. Each operation is atomic, and orders no
// other one.
#pragma once

#include <atomic>

namespace arbalest::engine::host {

inline float load_relaxed(float& shared) { return std::atomic_ref(shared).load(std::memory_order_relaxed); }

inline void store_relaxed(float& shared, float value) {
  std::atomic_ref(shared).store(value, std::memory_order_relaxed);
}

}  // namespace arbalest::engine::host
