// How sums over the columns of a matrix [rows, channels] are cut up between blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cuda/device/launch.h"

namespace arbalest::engine::cuda {

// Blocks of kThreads threads, each of `tile` channels times kThreads / tile rows (lanes). The rows are dealt to
// `slices` blocks a tile.
struct ColumnCut {
  std::int64_t tile = 1;  // a power of two
  std::int64_t tiles = 1;
  std::int64_t slices = 1;

  std::int64_t blocks() const { return tiles * slices; }
  // The same channels in one slice: to add up what the slices came to.
  ColumnCut whole() const { return {tile, tiles, 1}; }
};

// Depends on the extents only, and so does the order of additions.
//   pixels: rows whose numbers of one channel lie side by side; 1: the channels of a row do
//   rows_of_thread: about so many rows are added in a row, before partial sums meet
inline ColumnCut cut_columns(std::int64_t rows, std::int64_t channels, std::int64_t pixels,
                             std::int64_t rows_of_thread = 16) {
  const std::int64_t widest_tile = pixels == 1 ? 32 : 1;  // channels that neighboring threads read side by side
  ColumnCut cut;
  while (cut.tile < widest_tile && cut.tile < channels) cut.tile *= 2;
  cut.tiles = (channels + cut.tile - 1) / cut.tile;
  const std::int64_t most = std::max<std::int64_t>(kMaxBlocks / cut.tiles, 1);
  cut.slices = std::clamp<std::int64_t>(rows / (kThreads / cut.tile * rows_of_thread), 1, most);
  return cut;
}

// Where a thread stands in a cut.
struct ColumnPlace {
  std::int64_t thread;
  std::int64_t lane;   // of its block
  std::int64_t lanes;  // of a block
  std::int64_t slice;
  std::int64_t channel;  // may lie behind the last one

  __device__ explicit ColumnPlace(const ColumnCut& cut)
      : thread(threadIdx.x),
        lane(thread / cut.tile),
        lanes(kThreads / cut.tile),
        slice(blockIdx.x / cut.tiles),
        channel(blockIdx.x % cut.tiles * cut.tile + thread % cut.tile) {}

  __device__ std::int64_t first_row() const { return slice * lanes + lane; }
  __device__ std::int64_t row_step(const ColumnCut& cut) const { return cut.slices * lanes; }
};

}  // namespace arbalest::engine::cuda
