// Compiled for AVX-512: this code must not run on other processors.
#include "engine/cpu/winograd/blocked_kernels.h"

#include <algorithm>

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;
typedef float Vector __attribute__((vector_size(kTileBlock * sizeof(float)), may_alias));

inline Vector load(const float* address) { return *reinterpret_cast<const Vector*>(address); }
inline void store(const Vector& vector, float* address) { *reinterpret_cast<Vector*>(address) = vector; }

// B' d for a column or row of 6 vectors.
inline void transform_pixels(const Vector (&d)[6], Vector (&to)[6]) {
  const Vector even = d[4] - 4.0F * d[2], odd = d[3] - 4.0F * d[1];
  const Vector near = d[4] - d[2], far = 2.0F * (d[3] - d[1]);
  to[0] = 4.0F * d[0] + (d[4] - 5.0F * d[2]);
  to[1] = even + odd;
  to[2] = even - odd;
  to[3] = near + far;
  to[4] = near - far;
  to[5] = 4.0F * d[1] + (d[5] - 5.0F * d[3]);
}

// A' m for 6 vectors.
inline void transform_terms(const Vector (&m)[6], Vector (&to)[4]) {
  const Vector sum = m[1] + m[2], difference = m[1] - m[2];
  const Vector far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  to[0] = m[0] + sum + far_sum;
  to[1] = difference + 2.0F * far_difference;
  to[2] = sum + 4.0F * far_sum;
  to[3] = difference + 8.0F * far_difference + m[5];
}

struct Tile {
  Index example, y, x;  // first pixel of the result
};

Tile tile_at(const BlockedWinogradTask& task, Index number) {
  const Index in_image = number % task.tiles_of_image();
  return {number / task.tiles_of_image(), in_image / task.tiles_across() * kTileSide,
          in_image % task.tiles_across() * kTileSide};
}

// image: a block of channels [height, width, 16]. `is_inside`: whether the tile reads no padding. Component k goes to
// to + k * stride.
template <bool is_inside>
void transform_input(const BlockedWinogradTask& task, const Tile& tile, const float* image, float* to, Index stride) {
  Vector columns[6][6];  // [component of the column, column]
  for (Index x = 0; x < kTilePixels; ++x) {
    const Index column = tile.x + x - 1;
    Vector pixels[6], transformed[6];
    for (Index y = 0; y < kTilePixels; ++y) {
      const Index row = tile.y + y - 1;
      const bool is_pixel = is_inside || (row >= 0 && row < task.height && column >= 0 && column < task.width);
      pixels[y] = is_pixel ? load(image + (row * task.width + column) * kTileBlock) : Vector{};
    }
    transform_pixels(pixels, transformed);
    for (Index k = 0; k < kTilePixels; ++k) columns[k][x] = transformed[k];
  }
  for (Index k = 0; k < kTilePixels; ++k) {
    Vector transformed[6];
    transform_pixels(columns[k], transformed);
    for (Index i = 0; i < kTilePixels; ++i) store(transformed[i], to + (k * kTilePixels + i) * stride);
  }
}

// Products of `tiles` tiles and the filters of a group, summed over channels. input: [tiles, channels]; weights:
// [channels, blocks, 16]. The result of tile t and block b goes to to + t * tile + b * block.
template <int tiles, int blocks>
void multiply(Index channels, const float* input, const float* weights, float* to, Index tile, Index block) {
  Vector sums[tiles][blocks] = {};
  for (Index c = 0; c < channels; ++c) {
    Vector factors[blocks];
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) factors[b] = load(weights + (c * blocks + b) * kTileBlock);
#pragma GCC unroll 16
    for (int t = 0; t < tiles; ++t) {
      const float number = input[t * channels + c];
#pragma GCC unroll 4
      for (int b = 0; b < blocks; ++b) sums[t][b] += number * factors[b];
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < tiles; ++t) {
#pragma GCC unroll 4
    for (int b = 0; b < blocks; ++b) store(sums[t][b], to + t * tile + b * block);
  }
}

// All `count` tiles, as many at a time as there are registers for their sums.
template <int blocks>
void multiply_group(Index count, Index channels, const float* input, const float* weights, float* to, Index tile,
                    Index block) {
  constexpr int kMost = blocks == 4 ? 6 : blocks == 2 ? 12 : 16;
  Index t = 0;
  const auto run = [&]<int tiles>() {
    for (; t + tiles <= count; t += tiles) {
      multiply<tiles, blocks>(channels, input + t * channels, weights, to + t * tile, tile, block);
    }
  };
  run.template operator()<kMost>();
  run.template operator()<(kMost > 8 ? 8 : 4)>();
  run.template operator()<4>();
  run.template operator()<2>();
  run.template operator()<1>();
}

// terms: the 36 components of a tile's results, [36, 16].
void transform_output(const BlockedWinogradTask& task, const Tile& tile, Index block, const float* terms) {
  Vector columns[4][6];  // [row of the result, column of components]
  for (Index x = 0; x < kTilePixels; ++x) {
    Vector components[6], transformed[4];
    for (Index y = 0; y < kTilePixels; ++y) components[y] = load(terms + (y * kTilePixels + x) * kTileBlock);
    transform_terms(components, transformed);
    for (Index y = 0; y < kTileSide; ++y) columns[y][x] = transformed[y];
  }
  const Vector bias = task.bias == nullptr ? Vector{} : load(task.bias + block * kTileBlock);
  const Index plane = (tile.example * (task.filters / kTileBlock) + block) * task.height * task.width;
  const Index rows = std::min(kTileSide, task.height - tile.y);
  const Index width = std::min(kTileSide, task.width - tile.x);
  for (Index y = 0; y < rows; ++y) {
    Vector results[4];
    transform_terms(columns[y], results);
    const Index first = (plane + (tile.y + y) * task.width + tile.x) * kTileBlock;
    for (Index x = 0; x < width; ++x) {
      const Index at = first + x * kTileBlock;
      Vector sum = results[x] + bias;
      if (task.addend != nullptr) sum += load(task.addend + at);
      if (task.relu) sum = sum < 0.0F ? Vector{} : sum;
      store(sum, task.output + at);
    }
  }
}

}  // namespace

void convolve_tiles(const BlockedWinogradTask& task, Index first, Index count, float* scratch) {
  const Index channels = task.channels, blocks = task.filters / kTileBlock;
  const Index stride = tile_stride(channels, count);
  float* const terms = scratch + kTileTerms * stride;  // [count, blocks, 36, 16]
  for (Index t = 0; t < count; ++t) {
    const Tile tile = tile_at(task, first + t);
    const bool is_inside =
        tile.y > 0 && tile.x > 0 && tile.y + kTilePixels - 1 <= task.height && tile.x + kTilePixels - 1 <= task.width;
    for (Index c = 0; c < channels; c += kTileBlock) {
      const float* image = task.input + (tile.example * channels + c) * task.height * task.width;
      float* const to = scratch + t * channels + c;
      is_inside ? transform_input<true>(task, tile, image, to, stride)
                : transform_input<false>(task, tile, image, to, stride);
    }
  }
  const Index tile_terms = blocks * kTileTerms * kTileBlock;
  for (Index k = 0; k < kTileTerms; ++k) {
    const float* input = scratch + k * stride;
    for (Index b = 0; b < blocks; b += blocks_of_group(b, blocks)) {
      const float* weights = task.weights + (k * blocks + b) * channels * kTileBlock;
      float* const to = terms + (b * kTileTerms + k) * kTileBlock;
      const Index block = kTileTerms * kTileBlock;
      switch (blocks_of_group(b, blocks)) {
        case 4:
          multiply_group<4>(count, channels, input, weights, to, tile_terms, block);
          break;
        case 2:
          multiply_group<2>(count, channels, input, weights, to, tile_terms, block);
          break;
        default:
          multiply_group<1>(count, channels, input, weights, to, tile_terms, block);
      }
    }
  }
  for (Index t = 0; t < count; ++t) {
    const Tile tile = tile_at(task, first + t);
    for (Index b = 0; b < blocks; ++b) {
      transform_output(task, tile, b, terms + t * tile_terms + b * kTileTerms * kTileBlock);
    }
  }
}

}  // namespace arbalest::engine::cpu
