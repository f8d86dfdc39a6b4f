// Loops of ours on the cores that a stream lends to its task.
#pragma once

#include <algorithm>
#include <cstdint>

namespace arbalest::engine::cpu {

// Calls body(begin, end) for `parts` equal ranges of [0, count), cut at multiples of a cache line of floats, each on
// one thread. For one thread there is no parallel region.
template <typename Body>
void for_ranges(int parts, std::int64_t count, const Body& body) {
  constexpr std::int64_t kLine = 16;
  if (parts <= 1 || count <= kLine) {
    body(std::int64_t{0}, count);
    return;
  }
  const std::int64_t part = ((count + parts - 1) / parts + kLine - 1) / kLine * kLine;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int i = 0; i < parts; ++i) {
    const std::int64_t begin = std::min(count, i * part);
    const std::int64_t end = std::min(count, begin + part);
    if (begin < end) body(begin, end);
  }
}

// Calls body(i) for i in [0, count), which must not depend on each other.
template <typename Body>
void for_each_index(int threads, std::int64_t count, const Body& body) {
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace arbalest::engine::cpu
