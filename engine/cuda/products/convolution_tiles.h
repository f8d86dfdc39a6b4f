// The tiles of a convolution's products, and how their operands are read. All choices depend on the extents and the
// memory order only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/cuda/products/image_operands.h"

namespace arbalest::engine::cuda {

template <typename Arithmetic>
struct Tiles {
  using Square = Tile<64, 64, 1, Arithmetic>;  // many of both
  using Tall = Tile<64, 32, 2, Arithmetic>;    // at most 32 columns
  using Slim = Tile<64, 16, 4, Arithmetic>;    // at most 16 columns
  using Flat = Tile<16, 64, 4, Arithmetic>;    // at most 16 rows
  using Wide = Tile<32, 64, 2, Arithmetic>;    // at most 32 rows
  using Small = Tile<32, 32, 4, Arithmetic>;   // too few of both for larger tiles
};

struct ProductExtents {
  std::int64_t rows;
  std::int64_t columns;
};

inline std::int64_t count_tiles(const ProductExtents& of, std::int64_t rows, std::int64_t columns) {
  return ((of.rows + rows - 1) / rows) * ((of.columns + columns - 1) / columns);
}

// Returns body(tile) with the tile for pixels as rows, and channels or filters as columns. `step`: elements from one
// channel or filter, of those that k counts, to the next.
template <typename Arithmetic, typename Body>
auto with_tile_of_images(const ProductExtents& of, int step, const Body& body) {
  using Of = Tiles<Arithmetic>;
  constexpr std::int64_t kFew = 16;
  const bool is_small = of.rows <= 32 || count_tiles(of, 64, 64) < kFew;
  if constexpr (!Arithmetic::kChannelsLast) {
    if (step == 1) return is_small ? body(typename Of::Small{}) : body(typename Of::Square{});  // a dense layer
  }
  if (of.columns <= 16 && of.rows > 32) return body(typename Of::Slim{});
  if (is_small) return body(typename Of::Small{});
  if (of.columns <= 32) return body(typename Of::Tall{});
  return body(typename Of::Square{});
}

// The same for filters as rows, and taps of channels as columns.
template <typename Arithmetic, typename Body>
auto with_tile_of_weights(const ProductExtents& of, const Body& body) {
  using Of = Tiles<Arithmetic>;
  if (of.rows <= 16) return body(typename Of::Flat{});
  if (of.rows <= 32) return body(typename Of::Wide{});
  return body(typename Of::Square{});
}

// How the left operand of a product is read (tiled_product.h).
template <int kChunkOf, bool kAlongInner>
struct Reading {
  static constexpr int kChunk = kChunkOf;
  static constexpr bool kLanesAlongInner = kAlongInner;
};

// Products that count too few channels, filters or pixels to read several at once are rare, so they have one tile for
// all extents. LeNet's first layer, with one channel and 20 filters, is one of them.
using NarrowReading = Reading<1, false>;
template <typename Arithmetic>
using NarrowTileOfImages = typename Tiles<Arithmetic>::Tall;
template <typename Arithmetic>
using NarrowTileOfWeights = typename Tiles<Arithmetic>::Wide;

// Returns body(reading) for a k that counts taps of `lines` channels or filters, whose memory has `step` elements from
// one to the next. At best, each thread reads one chunk in a turn, because to find the place of a chunk is dear.
template <typename Tile, typename Body>
auto with_reading_of_lines(int lines, int step, const Body& body) {
  using Of = Tiles<typename Tile::Arithmetic>;
  constexpr bool kHasDenseLayers = Tile::Arithmetic::kChannelsLast || std::is_same_v<Tile, typename Of::Small> ||
                                   std::is_same_v<Tile, typename Of::Square>;
  constexpr int kAll = Tile::kRows * kInner / Tile::kThreadsOfPart;
  if constexpr (kHasDenseLayers) {
    if (step == 1) return body(Reading<4, true>{});
  }
  if constexpr (!Tile::Arithmetic::kChannelsLast) {
    if (lines % kAll == 0) return body(Reading<kAll, false>{});
  }
  return body(Reading<4, false>{});
}

// The same for a k that counts the pixels of each row.
template <typename Arithmetic, typename Body>
auto with_reading_of_pixels(int step, const Body& body) {
  if constexpr (!Arithmetic::kChannelsLast) {
    if (step == 1) return body(Reading<4, true>{});
  }
  return body(Reading<4, false>{});
}

}  // namespace arbalest::engine::cuda
