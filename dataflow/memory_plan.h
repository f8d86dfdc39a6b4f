// Lifetimes to arena offsets: a pure function.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace arbalest::dataflow {

// A buffer that holds something from time `first` to time `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // of each lifetime, 64-byte aligned
  std::size_t bytes = 0;             // of the arena
};

// No two buffers that live at the same time overlap. Largest buffer first, each at the lowest offset where it fits.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace arbalest::dataflow
