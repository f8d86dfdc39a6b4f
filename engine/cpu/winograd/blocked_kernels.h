// The loops of Winograd's minimal filtering F(4 x 4, 3 x 3) for 3 x 3 convolutions in float32, with 16 channels side by
// side: images [n, c / 16, h, w, 16]. A tile of 4 x 4 results takes 36 products per channel instead of 144:
//   Y = A' (G g G' * B' d B) A, for a kernel g and 6 x 6 pixels d
// (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016). oneDNN's kernels of this kind need 32
// channels, and many pixels before they are faster than direct ones. These serve predictions, whose weights are
// transformed once.
//
// Only on a processor with AVX-512.
#pragma once

#include <cstdint>

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kTileSide = 4;    // results
inline constexpr std::int64_t kTilePixels = 6;  // a side of the pixels that a tile reads
inline constexpr std::int64_t kTileTerms = 36;  // components of a transformed tile
inline constexpr std::int64_t kTileBlock = 16;  // channels side by side

// Filters are multiplied in groups of 4, 2 or 1 blocks: the blocks of the group that begins with block `first`.
constexpr std::int64_t blocks_of_group(std::int64_t first, std::int64_t blocks) {
  const std::int64_t left = blocks - first;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

struct BlockedWinogradTask {
  const float* input;    // [n, channels / 16, height, width, 16]; padded by a pixel on all sides
  const float* weights;  // [36, groups of filters, channels, 16 blocks of the group]
  const float* bias;     // [filters], aligned to a cache line; null: zeros
  const float* addend;   // as the output; null: zeros
  bool relu;             // max(0, .) of the sum; NaN stays NaN
  float* output;         // [n, filters / 16, height, width, 16]
  std::int64_t channels;
  std::int64_t filters;
  std::int64_t height;
  std::int64_t width;

  std::int64_t tiles_across() const { return (width + kTileSide - 1) / kTileSide; }
  std::int64_t tiles_of_image() const { return tiles_across() * ((height + kTileSide - 1) / kTileSide); }
};

// Floats of scratch for `tiles` tiles at a time.
constexpr std::int64_t tile_stride(std::int64_t channels, std::int64_t tiles) { return channels * tiles + kTileBlock; }
constexpr std::int64_t tile_scratch(std::int64_t channels, std::int64_t filters, std::int64_t tiles) {
  return kTileTerms * (tile_stride(channels, tiles) + filters * tiles);
}

// Computes `count` tiles from `first` on; tiles are numbered over all examples, row by row. scratch: tile_scratch(),
// aligned to a cache line. The bits do not depend on which tiles are computed together.
void convolve_tiles(const BlockedWinogradTask& task, std::int64_t first, std::int64_t count, float* scratch);

}  // namespace arbalest::engine::cpu
