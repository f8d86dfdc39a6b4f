// Sums in an order that does not depend on how the addends are divided among processes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace arbalest::scheduler {

// Adds neighbors, then neighbors of these sums, and so on. `parts` must not be empty; T::add(const T&) adds. If each
// process adds 2^n neighboring parts, and the sums of the processes are added in the same way, the result has the bits
// of the sum of all parts.
template <typename T>
T sum_in_pairs(std::vector<T>& parts) {
  for (std::size_t step = 1; step < parts.size(); step *= 2) {
    for (std::size_t i = 0; i + step < parts.size(); i += 2 * step) parts[i].add(parts[i + step]);
  }
  return std::exchange(parts.front(), {});
}

}  // namespace arbalest::scheduler
