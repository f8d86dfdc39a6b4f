// The kernels of a convolution's output, for products of type T in memory (image_operands.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/cuda/products/convolution_products.h"
#include "engine/cuda/products/convolution_tiles.h"
#include "engine/cuda/products/image_results.h"

namespace arbalest::engine::cuda {

template <typename T, typename Tile, typename Reading>
__device__ void compute_output(const PatchRows<T, Reading::kChunk, Reading::kLanesAlongInner> patches,
                               const WeightColumns<T, std::min(Reading::kChunk, kLongestPadded), true> weights,
                               const OutputResult<T> result, const ProductCut cut, const SliceMemory slices) {
  __shared__ typename Tile::Memory memory;
  multiply_tile<Tile>(patches, weights, result, cut, slices, static_cast<int>(blockIdx.x), memory);
}

// Returns body(tile, reading, cut).
template <typename Arithmetic, typename Body>
auto with_product_of_output(const ConvolutionSizes& sizes, const Body& body) {
  const ProductExtents extents{sizes.output_pixels(), sizes.filters};
  const auto with_cut = [&](auto tile, auto reading) {
    const std::int64_t inner = std::int64_t{sizes.taps()} * padded_to_chunks<reading.kChunk>(sizes.channels);
    return body(tile, reading, cut_product<decltype(tile)>(extents.rows, extents.columns, inner));
  };
  if (sizes.channels < 3) return with_cut(NarrowTileOfImages<Arithmetic>{}, NarrowReading{});
  return with_tile_of_images<Arithmetic>(extents, sizes.input.channel, [&](auto tile) {
    return with_reading_of_lines<decltype(tile)>(sizes.channels, sizes.input.channel,
                                                 [&](auto reading) { return with_cut(tile, reading); });
  });
}

template <typename Arithmetic>
std::size_t output_bytes(const ConvolutionSizes& sizes) {
  return with_product_of_output<Arithmetic>(
      sizes, [](auto tile, auto, const ProductCut& cut) { return slice_bytes<decltype(tile)>(cut); });
}

template <typename T, typename Arithmetic>
void enqueue_output_of(const ConvolutionSizes& sizes, const ConvolutionOutput& of, const StreamContext& context) {
  with_product_of_output<Arithmetic>(sizes, [&](auto tile, auto reading, const ProductCut& cut) {
    constexpr int kChunk = reading.kChunk;
    const int lines = padded_to_chunks<kChunk>(sizes.channels);
    const TapNumbers taps(lines, sizes.columns.kernel);
    const bool is_whole = kChunk > 1 && lines == sizes.channels;
    PatchRows<T, kChunk, reading.kLanesAlongInner> patches;
    patches.images = static_cast<const T*>(of.input);
    patches.sizes = sizes;
    patches.pixels = PixelNumbers(sizes.rows.output, sizes.columns.output);
    patches.taps = taps;
    patches.in_words = is_whole && sizes.input.channel == 1;
    WeightColumns<T, std::min(kChunk, kLongestPadded), true> weights;
    weights.weights = static_cast<const T*>(of.weights);
    weights.taps = taps;
    weights.outer_step = sizes.weights.filter;
    weights.inner_step = sizes.weights.channel;
    weights.tap_step = sizes.weights.tap;
    weights.lines = sizes.channels;
    weights.in_words = is_whole && sizes.weights.channel == 1;
    OutputResult<T> result;
    result.images = static_cast<T*>(of.output);
    result.bias = of.bias;
    result.steps = sizes.output;
    result.pixels = Divisor(std::int64_t{sizes.rows.output} * sizes.columns.output);
    result.rows = cut.rows;
    result.columns = cut.columns;
    result.activates = of.activation.has_value();
    if (of.activation.has_value()) result.activation = *of.activation;
    launch<compute_output<T, decltype(tile), decltype(reading)>>(
        cut.blocks(), context.stream, patches, weights, result, cut,
        SliceMemory{static_cast<float*>(of.scratch), context.arrivals});
  });
}

}  // namespace arbalest::engine::cuda
