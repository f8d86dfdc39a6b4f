// Ranges of the elements of a flat vector.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace arbalest::engine {

struct ElementRange {
  std::int64_t begin = 0;  // elements [begin, end)
  std::int64_t end = 0;

  std::int64_t elements() const noexcept { return end - begin; }
};

// Calls body(range, is_inside) for the pieces of `whole` that lie inside one of `ranges` and between them, in order.
// `ranges` ascend and do not overlap.
template <typename Body>
void for_each_piece(const ElementRange& whole, std::span<const ElementRange> ranges, const Body& body) {
  std::int64_t begin = whole.begin;
  const auto add = [&](std::int64_t end, bool is_inside) {
    const std::int64_t piece_end = std::min(end, whole.end);
    if (piece_end <= begin) return;
    body(ElementRange{begin, piece_end}, is_inside);
    begin = piece_end;
  };
  for (const ElementRange& range : ranges) {
    add(range.begin, false);
    add(range.end, true);
  }
  add(whole.end, false);
}

}  // namespace arbalest::engine
