// Turns lifetimes into arena offsets: a pure function.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace arbalest::dataflow {

// A buffer that holds data from time `first` to time `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // by lifetime; 64-byte aligned
  std::size_t bytes = 0;             // size of the arena
};

// Buffers that live at the same time do not overlap. The largest buffer is placed first; each gets the lowest offset at
// which it fits.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace arbalest::dataflow
