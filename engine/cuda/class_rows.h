// Rows of class scores, [examples, classes], shared out to the threads of a grid: kRowLanes neighboring threads have a
// row, and a lane has every kRowLanes-th class of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cuda/launch.h"

namespace arbalest::engine::cuda {

inline constexpr int kRowLanes = 16;
inline constexpr int kBlockRows = kThreads / kRowLanes;

// A single block where that is less work than the second kernel that adds up what several blocks found.
inline std::int64_t row_blocks(std::int64_t examples, std::int64_t classes) {
  constexpr std::int64_t kOneBlock = 1024;  // elements
  if (examples * classes <= kOneBlock) return 1;
  return std::min<std::int64_t>((examples + kBlockRows - 1) / kBlockRows, kMaxBlocks);
}

}  // namespace arbalest::engine::cuda
