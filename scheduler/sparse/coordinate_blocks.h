// Blocks of neighboring coordinates, and the random order in which a pass visits them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataflow/input/batches/random_sequence.h"

namespace arbalest::scheduler {

struct CoordinateBlock {
  std::int64_t first = 0;
  std::int64_t end = 0;  // not included

  std::int64_t size() const noexcept { return end - first; }
};

// Divides `coordinates` into `blocks` blocks, whose sizes differ by at most one.
inline std::vector<CoordinateBlock> equal_blocks(std::int64_t coordinates, int blocks) {
  std::vector<CoordinateBlock> result;
  const std::int64_t size = coordinates / blocks;
  const std::int64_t longer = coordinates % blocks;
  std::int64_t first = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t end = first + size + (b < longer ? 1 : 0);
    result.push_back({first, end});
    first = end;
  }
  return result;
}

// A permutation of [0, count), which depends on the seed and the pass only. `stream` separates users of one seed.
inline std::vector<std::int64_t> random_order(std::int64_t count, std::uint64_t seed, std::uint64_t stream,
                                              std::uint64_t pass) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < count; ++i) order.push_back(i);
  dataflow::RandomSequence random(seed, stream, pass);
  dataflow::shuffle(std::span(order), random);
  return order;
}

}  // namespace arbalest::scheduler
