// The loops of Winograd's minimal filtering in float32 with 16 channels side by side: images [n, blocks of channels, h,
// w, 16] or [n, h, w, blocks of channels, 16]. A tile of m x m results of an r x r kernel takes 36 products per
// channel, for m + r = 7. A direct convolution takes 144 for a 3 x 3 kernel and 100 for a 5 x 5 kernel:
//   Y = A' (G g G' * B' d B) A, for a kernel g and 6 x 6 pixels d
// (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016). B is the same for all kernels.
// oneDNN's kernels of this kind are for 3 x 3 kernels, and for many channels and pixels. These serve predictions, whose
// weights are transformed once.
//
// Call these functions only on a processor with AVX-512.
#pragma once

#include <cstdint>

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kTilePixels = 6;                    // a side of the pixels that a tile reads
inline constexpr std::int64_t kTileTerms = 36;                    // components of a transformed tile
inline constexpr std::int64_t kTileBlock = 16;                    // channels side by side
inline constexpr std::int64_t kTilePoints[] = {0, 1, -1, 2, -2};  // of the polynomials; infinity is the sixth

constexpr std::int64_t tile_blocks(std::int64_t channels) { return (channels + kTileBlock - 1) / kTileBlock; }

// Filters are multiplied in groups of 4, 2 or 1 blocks: the blocks of the group that begins with block `first`.
constexpr std::int64_t blocks_of_group(std::int64_t first, std::int64_t blocks) {
  const std::int64_t left = blocks - first;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

// Images with 16 channels side by side. Steps are in floats, and multiples of 16.
struct BlockedImages16 {
  std::int64_t channels, height, width;
  std::int64_t example_step, block_step, row_step, pixel_step;
};

struct BlockedWinogradTask {
  BlockedImages16 input;
  BlockedImages16 output;
  std::int64_t padding;  // pixels above the input and to its left
  std::int64_t side;     // m: 4 for a 3 x 3 kernel, 2 for a 5 x 5 kernel

  std::int64_t tiles_across() const { return (output.width + side - 1) / side; }
  std::int64_t tiles_of_image() const { return tiles_across() * ((output.height + side - 1) / side); }
};

struct BlockedWinogradOperands {
  const float* input;
  const float* weights;  // [36, groups of blocks of filters, channels, 16 blocks of the group]
  const float* bias;     // [16 blocks of filters]
  bool relu;             // max(0, .) of the sum; NaN stays NaN
  float* output;
};

// Floats of scratch for `tiles` tiles at a time: their pixels, then their products.
constexpr std::int64_t tile_stride(std::int64_t channels, std::int64_t tiles) {
  return (tile_blocks(channels) * tiles + 1) * kTileBlock;  // + 1: components lie in different sets of the cache
}
constexpr std::int64_t tile_scratch(std::int64_t channels, std::int64_t filters, std::int64_t tiles) {
  return kTileTerms * (tile_stride(channels, tiles) + tile_blocks(filters) * kTileBlock * tiles);
}

// Computes `count` tiles from `first` on; tiles are numbered over all examples, row by row. scratch: tile_scratch(),
// aligned to a cache line. The bits do not depend on which tiles are computed together.
void convolve_tiles(const BlockedWinogradTask& task, const BlockedWinogradOperands& operands, std::int64_t first,
                    std::int64_t count, float* scratch);

}  // namespace arbalest::engine::cpu
