// What buffers, and the pieces that one is cut into, are aligned to: a cache line, and the widest vectors.
#pragma once

#include <cstddef>

namespace arbalest::engine {

inline constexpr std::size_t kAlignment = 64;  // bytes

// The next multiple of kAlignment.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace arbalest::engine
