// Vectors whose final size only the end of a file tells.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

// What a vector may grow to, and what an error says if it may not grow on.
struct GrowthLimit {
  engine::host::MemoryBudget budget;
  std::string what;         // what is being read
  std::string_view remedy;  // what the user can change
};

// Makes room for `more` further elements. A vector that grows gets half of its capacity on top, so that growing takes a
// constant time for each element. Throws kOutOfMemory, and leaves the vector as it is, if the new memory, which lies
// beside the old for a moment, does not fit.
template <typename T>
void make_room(std::vector<T>& vector, std::size_t more, const GrowthLimit& limit) {
  if (vector.capacity() - vector.size() >= more) return;
  constexpr std::size_t kFewest = 1 << 12;
  const std::size_t capacity = std::max({vector.size() + more, vector.capacity() + vector.capacity() / 2, kFewest});
  limit.budget.require(capacity * sizeof(T), limit.what, limit.remedy);
  vector.reserve(capacity);
}

}  // namespace arbalest::dataflow
