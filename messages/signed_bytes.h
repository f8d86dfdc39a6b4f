// Sizes as signed numbers, which may be subtracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace arbalest::jobs {

// Returns the largest std::int64_t if `bytes` is larger.
constexpr std::int64_t signed_bytes(std::size_t bytes) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return std::cmp_less(bytes, kMost) ? static_cast<std::int64_t>(bytes) : kMost;
}

}  // namespace arbalest::jobs
