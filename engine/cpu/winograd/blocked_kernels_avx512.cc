// Compiled for AVX-512: this code must not run on other processors.
#include "engine/cpu/winograd/blocked_kernels.h"

#include <algorithm>

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;
typedef float Vector __attribute__((vector_size(kTileBlock * sizeof(float)), may_alias));

inline Vector load(const float* address) { return *reinterpret_cast<const Vector*>(address); }
inline void store(const Vector& vector, float* address) { *reinterpret_cast<Vector*>(address) = vector; }

// B' d for a column or row of pixels.
inline void transform_pixels(const Vector (&d)[kTilePixels], Vector (&to)[kTilePixels]) {
  const Vector even = d[4] - 4.0F * d[2], odd = d[3] - 4.0F * d[1];
  const Vector near = d[4] - d[2], far = 2.0F * (d[3] - d[1]);
  to[0] = 4.0F * d[0] + (d[4] - 5.0F * d[2]);
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = near + far;
  to[4] = near - far;
  to[5] = 4.0F * d[1] + (d[5] - 5.0F * d[3]);
}

// A' m for a column or row of components: powers of the points, and infinity in the last result.
template <int side>
inline void transform_terms(const Vector (&m)[kTilePixels], Vector (&to)[side]) {
  const Vector sum = m[1] + m[2], difference = m[1] - m[2];
  const Vector far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  to[0] = m[0] + sum + far_sum;
  to[1] = difference + 2.0F * far_difference;
  if constexpr (side == 4) {
    to[2] = sum + 4.0F * far_sum;
    to[3] = difference + 8.0F * far_difference;
  }
  to[side - 1] += m[5];
}

struct Tile {
  Index example, y, x;  // first pixel of the result
};

Tile tile_at(const BlockedWinogradTask& task, Index number) {
  const Index in_image = number % task.tiles_of_image();
  return {number / task.tiles_of_image(), in_image / task.tiles_across() * task.side,
          in_image % task.tiles_across() * task.side};
}

// image: a block of channels. (y, x): first pixel, which may lie in the padding. `is_inside`:
// whether the tile reads no padding. Component k goes to to + k * stride.
template <bool is_inside>
void transform_input(const BlockedImages16& images, Index y, Index x, const float* image, float* to, Index stride) {
  Vector columns[kTilePixels][kTilePixels];  // [component of the column, column]
  for (Index i = 0; i < kTilePixels; ++i) {
    Vector pixels[kTilePixels], transformed[kTilePixels];
    for (Index k = 0; k < kTilePixels; ++k) {
      const Index row = y + k, column = x + i;
      const bool is_pixel = is_inside || (row >= 0 && row < images.height && column >= 0 && column < images.width);
      pixels[k] = is_pixel ? load(image + row * images.row_step + column * images.pixel_step) : Vector{};
    }
    transform_pixels(pixels, transformed);
    for (Index k = 0; k < kTilePixels; ++k) columns[k][i] = transformed[k];
  }
  for (Index k = 0; k < kTilePixels; ++k) {
    Vector transformed[kTilePixels];
    transform_pixels(columns[k], transformed);
    for (Index i = 0; i < kTilePixels; ++i) store(transformed[i], to + (k * kTilePixels + i) * stride);
  }
}

// Products of `tiles` tiles and the filters of a group, summed over channels. input: [tiles, pixels of a tile];
// weights: [channels, blocks, 16]. The result of tile t and block b goes to to + t * tile + b * block.
struct Product {
  Index channels;
  Index input_step;  // floats from a tile's input to the next
  Index tile;
  Index block;
};
template <int tiles, int blocks>
void multiply(const Product of, const float* input, const float* weights, float* to) {
  Vector sums[tiles][blocks] = {};
  for (Index c = 0; c < of.channels; ++c) {
    Vector factors[blocks];
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) factors[b] = load(weights + (c * blocks + b) * kTileBlock);
#pragma GCC unroll 16
    for (int t = 0; t < tiles; ++t) {
      const float number = input[t * of.input_step + c];
#pragma GCC unroll 4
      for (int b = 0; b < blocks; ++b) sums[t][b] += number * factors[b];
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < tiles; ++t) {
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) store(sums[t][b], to + t * of.tile + b * of.block);
  }
}

// All `count` tiles, as many at a time as there are registers for their sums.
template <int blocks>
void multiply_group(Index count, const Product& of, const float* input, const float* weights, float* to) {
  constexpr int kMost = blocks == 4 ? 6 : blocks == 2 ? 12 : 16;
  Index t = 0;
  const auto run = [&]<int tiles>() {
    for (; t + tiles <= count; t += tiles) {
      multiply<tiles, blocks>(of, input + t * of.input_step, weights, to + t * of.tile);
    }
  };
  run.template operator()<kMost>();
  run.template operator()<(kMost > 8 ? 8 : 4)>();
  run.template operator()<4>();
  run.template operator()<2>();
  run.template operator()<1>();
}

void multiply_terms(const BlockedWinogradTask& task, Index count, const float* pixels, const float* weights,
                    float* terms) {
  const Index blocks = tile_blocks(task.output.channels);
  const Index stride = tile_stride(task.input.channels, count);
  const Product of{task.input.channels, tile_blocks(task.input.channels) * kTileBlock, blocks * kTileTerms * kTileBlock,
                   kTileTerms * kTileBlock};
  for (Index k = 0; k < kTileTerms; ++k) {
    const float* input = pixels + k * stride;
    for (Index b = 0; b < blocks; b += blocks_of_group(b, blocks)) {
      const float* group = weights + (k * blocks + b) * task.input.channels * kTileBlock;
      float* const to = terms + (b * kTileTerms + k) * kTileBlock;
      switch (blocks_of_group(b, blocks)) {
        case 4: multiply_group<4>(count, of, input, group, to); break;
        case 2: multiply_group<2>(count, of, input, group, to); break;
        default: multiply_group<1>(count, of, input, group, to);
      }
    }
  }
}

// terms: the 36 components of the tile's results for a block of filters, [36, 16].
template <int side>
void transform_output(const BlockedImages16& images, const BlockedWinogradOperands& operands, const Tile& tile,
                      Index block, const float* terms) {
  Vector columns[side][kTilePixels];  // [row of the result, column of components]
  for (Index x = 0; x < kTilePixels; ++x) {
    Vector components[kTilePixels], transformed[side];
    for (Index y = 0; y < kTilePixels; ++y) components[y] = load(terms + (y * kTilePixels + x) * kTileBlock);
    transform_terms(components, transformed);
    for (Index y = 0; y < side; ++y) columns[y][x] = transformed[y];
  }
  const Vector bias = load(operands.bias + block * kTileBlock);
  const Index first = tile.example * images.example_step + block * images.block_step;
  const Index rows = std::min<Index>(side, images.height - tile.y);
  const Index width = std::min<Index>(side, images.width - tile.x);
  for (Index y = 0; y < rows; ++y) {
    Vector results[side];
    transform_terms(columns[y], results);
    for (Index x = 0; x < width; ++x) {
      const Index at = first + (tile.y + y) * images.row_step + (tile.x + x) * images.pixel_step;
      Vector sum = results[x] + bias;
      if (operands.relu) sum = sum < 0.0F ? Vector{} : sum;
      store(sum, operands.output + at);
    }
  }
}

}  // namespace

void convolve_tiles(const BlockedWinogradTask& task, const BlockedWinogradOperands& operands, Index first, Index count,
                    float* scratch) {
  const BlockedImages16& images = task.input;
  const Index channels = tile_blocks(images.channels) * kTileBlock, filters = tile_blocks(task.output.channels);
  const Index stride = tile_stride(images.channels, count);
  for (Index t = 0; t < count; ++t) {
    const Tile tile = tile_at(task, first + t);
    const Index y = tile.y - task.padding, x = tile.x - task.padding;
    const bool is_inside = y >= 0 && x >= 0 && y + kTilePixels <= images.height && x + kTilePixels <= images.width;
    for (Index c = 0; c < channels; c += kTileBlock) {
      const float* image = operands.input + tile.example * images.example_step + c / kTileBlock * images.block_step;
      float* const to = scratch + t * channels + c;
      is_inside ? transform_input<true>(images, y, x, image, to, stride)
                : transform_input<false>(images, y, x, image, to, stride);
    }
  }
  float* const terms = scratch + kTileTerms * stride;  // [count, blocks of filters, 36, 16]
  multiply_terms(task, count, scratch, operands.weights, terms);
  for (Index t = 0; t < count; ++t) {
    const Tile tile = tile_at(task, first + t);
    for (Index b = 0; b < filters; ++b) {
      const float* of_block = terms + (t * filters + b) * kTileTerms * kTileBlock;
      task.side == 4 ? transform_output<4>(task.output, operands, tile, b, of_block)
                     : transform_output<2>(task.output, operands, tile, b, of_block);
    }
  }
}

}  // namespace arbalest::engine::cpu
