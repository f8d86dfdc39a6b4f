// The usual grid sizes of our kernels.
#pragma once

#include <algorithm>
#include <cstdint>

namespace arbalest::engine::cuda {

inline constexpr int kThreads = 256;  // per block

// Number of blocks for a grid-stride loop over `elements`. The limit kMaxBlocks bounds the number of per-block partial
// results.
inline constexpr std::int64_t kMaxBlocks = 1024;
inline std::int64_t blocks_for(std::int64_t elements) {
  return std::clamp<std::int64_t>((elements + kThreads - 1) / kThreads, 1, kMaxBlocks);
}

}  // namespace arbalest::engine::cuda
