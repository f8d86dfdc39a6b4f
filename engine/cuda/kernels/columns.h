// Splits sums over the columns of a matrix [rows, channels] between blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cuda/runtime/launch.h"

namespace arbalest::engine::cuda {

// Each block of kThreads threads covers `tile` channels times kThreads / tile rows (lanes). The rows of a tile are
// divided between `slices` blocks.
struct ColumnCut {
  std::int64_t tile = 1;  // a power of two
  std::int64_t tiles = 1;
  std::int64_t slices = 1;

  std::int64_t blocks() const { return tiles * slices; }
  // Returns a cut of the same channels into one slice, which adds up the partial sums of all slices.
  ColumnCut whole() const { return {tile, tiles, 1}; }
};

// The cut depends on the extents only, and so does the order of additions.
//   pixels: consecutive rows whose numbers of one channel are contiguous; 1: the channels of a row are contiguous
//   rows_of_thread: about the number of rows that one thread adds before partial sums are combined
inline ColumnCut cut_columns(std::int64_t rows, std::int64_t channels, std::int64_t pixels,
                             std::int64_t rows_of_thread = 16) {
  const std::int64_t widest_tile = pixels == 1 ? 32 : 1;  // channels read by neighboring threads side by side
  ColumnCut cut;
  while (cut.tile < widest_tile && cut.tile < channels) cut.tile *= 2;
  cut.tiles = (channels + cut.tile - 1) / cut.tile;
  const std::int64_t most = std::max<std::int64_t>(kMaxBlocks / cut.tiles, 1);
  cut.slices = std::clamp<std::int64_t>(rows / (kThreads / cut.tile * rows_of_thread), 1, most);
  return cut;
}

// The position of a thread in a cut.
struct ColumnPlace {
  std::int64_t thread;
  std::int64_t lane;   // index in its block
  std::int64_t lanes;  // lanes per block
  std::int64_t slice;
  std::int64_t channel;  // may be beyond the last channel

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
