// Alignment of buffers and of the parts of a buffer. It suits cache lines and the widest vectors.
#pragma once

#include <cstddef>

namespace arbalest::engine {

inline constexpr std::size_t kAlignment = 64;  // bytes

// Rounds up to a multiple of kAlignment.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace arbalest::engine
