// The kernels of a convolution's gradients, for products of type T in memory (image_operands.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/base/error.h"
#include "engine/cuda/products/convolution_products.h"
#include "engine/cuda/products/convolution_tiles.h"
#include "engine/cuda/products/image_results.h"

namespace arbalest::engine::cuda {

// Everything about one of the two products.
template <typename TileOf, typename LeftOf, typename RightOf, typename ResultOf>
struct Product {
  using Tile = TileOf;
  using Left = LeftOf;

  LeftOf left;
  RightOf right;
  ResultOf result;
  ProductCut cut;
  SliceMemory slices;

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(Product& of, Visitor&& visit) {
    visit_addresses(of.left, visit);
    visit_addresses(of.right, visit);
    visit_addresses(of.result, visit);
    visit_addresses(of.slices, visit);
  }
};

template <typename T, typename Tile, typename Reading>
using WeightProduct =
    Product<Tile, GradientRows<T, Reading::kChunk, Reading::kLanesAlongInner, Tile::Arithmetic::kDifferentiates>,
            PatchColumns<T, Reading::kChunk, Reading::kLanesAlongInner>, WeightResult>;

template <typename T, typename Tile, typename Reading>
using InputProduct =
    Product<Tile, GradientPatchRows<T, Reading::kChunk, Reading::kLanesAlongInner, Tile::Arithmetic::kDifferentiates>,
            WeightColumns<T, std::min(Reading::kChunk, kLongestPadded), false>, InputGradientResult<T>>;

template <typename Of>
__device__ void compute(const Of& of, int block, typename Of::Tile::Memory& memory) {
  multiply_tile<typename Of::Tile>(of.left, of.right, of.result, of.cut, of.slices, block, memory);
}

template <typename Of>
__device__ void compute_one(const Of of) {
  __shared__ typename Of::Tile::Memory memory;
  compute(of, static_cast<int>(blockIdx.x), memory);
}

// The first blocks compute one product, and the others the other one.
template <typename First, typename Second>
__device__ void compute_both(const First first, const Second second) {
  union Memory {
    typename First::Tile::Memory of_first;
    typename Second::Tile::Memory of_second;
  };
  __shared__ Memory memory;
  const int block = static_cast<int>(blockIdx.x);
  const int blocks_of_first = first.cut.tiles * first.cut.slices;
  if (block < blocks_of_first) {
    compute(first, block, memory.of_first);
  } else {
    compute(second, block - blocks_of_first, memory.of_second);
  }
}

// Rare extents, of which neither product can read several numbers at once.
inline bool is_narrow(const ConvolutionSizes& sizes) { return sizes.columns.output < 3 || sizes.filters < 3; }

// Returns body(tile, reading, cut).
template <typename Arithmetic, typename Body>
auto with_product_of_weights(const ConvolutionSizes& sizes, const Body& body) {
  // With a column for the bias, whether there is one or not, so that the cut does not depend on it.
  const ProductExtents extents{sizes.filters, std::int64_t{sizes.taps()} * sizes.channels + 1};
  const auto with_cut = [&](auto tile, auto reading) {
    const std::int64_t inner =
        std::int64_t{sizes.images} * sizes.rows.output * padded_to_chunks<reading.kChunk>(sizes.columns.output);
    return body(tile, reading, cut_product<decltype(tile)>(extents.rows, extents.columns, inner));
  };
  if (is_narrow(sizes)) return with_cut(NarrowTileOfWeights<Arithmetic>{}, NarrowReading{});
  return with_reading_of_pixels<Arithmetic>(sizes.output.pixel, [&](auto reading) {
    return with_tile_of_weights<Arithmetic>(extents, [&](auto tile) { return with_cut(tile, reading); });
  });
}

template <typename Arithmetic, typename Body>
auto with_product_of_input(const ConvolutionSizes& sizes, const Body& body) {
  const ProductExtents extents{sizes.input_pixels(), sizes.channels};
  const auto with_cut = [&](auto tile, auto reading) {
    const std::int64_t inner = std::int64_t{sizes.taps()} * padded_to_chunks<reading.kChunk>(sizes.filters);
    return body(tile, reading, cut_product<decltype(tile)>(extents.rows, extents.columns, inner));
  };
  if (is_narrow(sizes)) return with_cut(NarrowTileOfImages<Arithmetic>{}, NarrowReading{});
  return with_tile_of_images<Arithmetic>(extents, sizes.output.channel, [&](auto tile) {
    return with_reading_of_lines<decltype(tile)>(sizes.filters, sizes.output.channel,
                                                 [&](auto reading) { return with_cut(tile, reading); });
  });
}

template <typename Arithmetic>
std::size_t weight_scratch_bytes(const ConvolutionSizes& sizes) {
  return with_product_of_weights<Arithmetic>(
      sizes, [](auto tile, auto, const ProductCut& cut) { return slice_bytes<decltype(tile)>(cut); });
}

template <typename T, typename Arithmetic>
OutputGradient<T, Arithmetic::kDifferentiates> gradient_before_activation(const ConvolutionGradients& of) {
  const auto* gradient = static_cast<const T*>(of.output_gradient);
  ARBALEST_CHECK(Arithmetic::kDifferentiates || !of.activation.has_value());
  if (!of.activation.has_value()) return {gradient, nullptr};
  return {gradient, static_cast<const T*>(of.output), derivative_of(*of.activation)};
}

template <typename T, typename Tile, typename Reading>
WeightProduct<T, Tile, Reading> weight_product(const ConvolutionSizes& sizes, const ConvolutionGradients& of,
                                               const ProductCut& cut, const StreamContext& context) {
  const int row = padded_to_chunks<Reading::kChunk>(sizes.columns.output);
  WeightProduct<T, Tile, Reading> product;
  static_cast<OutputGradient<T, Tile::Arithmetic::kDifferentiates>&>(product.left) =
      gradient_before_activation<T, typename Tile::Arithmetic>(of);
  product.left.sizes = sizes;
  product.left.pixels = PixelNumbers(sizes.rows.output, row);
  product.left.in_words = Reading::kChunk > 1 && row == sizes.columns.output && sizes.output.pixel == 1;
  product.right.images = static_cast<const T*>(of.input);
  product.right.sizes = sizes;
  product.right.pixels = product.left.pixels;
  product.right.taps = TapNumbers(sizes.channels, sizes.columns.kernel);
  product.result.weights = of.weights_gradient;
  product.result.bias = of.bias_gradient;
  product.result.steps = sizes.weights;
  product.result.channels = Divisor(sizes.channels);
  product.result.filters = sizes.filters;
  product.result.columns = sizes.taps() * sizes.channels;
  product.cut = cut;
  product.slices = {static_cast<float*>(of.scratch), context.arrivals};
  return product;
}

// Its slices meet behind those of the other product.
template <typename T, typename Tile, typename Reading>
InputProduct<T, Tile, Reading> input_product(const ConvolutionSizes& sizes, const ConvolutionGradients& of,
                                             const ProductCut& cut, const StreamContext& context) {
  constexpr int kChunk = Reading::kChunk;
  const int lines = padded_to_chunks<kChunk>(sizes.filters);
  InputProduct<T, Tile, Reading> product;
  static_cast<OutputGradient<T, Tile::Arithmetic::kDifferentiates>&>(product.left) =
      gradient_before_activation<T, typename Tile::Arithmetic>(of);
  product.left.sizes = sizes;
  product.left.pixels = PixelNumbers(sizes.rows.input, sizes.columns.input);
  product.left.taps = TapNumbers(lines, sizes.columns.kernel);
  product.left.row_stride = Divisor(sizes.rows.stride);
  product.left.column_stride = Divisor(sizes.columns.stride);
  product.left.in_words = kChunk > 1 && lines == sizes.filters && sizes.output.channel == 1;
  product.right.weights = static_cast<const T*>(of.weights);
  product.right.taps = product.left.taps;
  product.right.outer_step = sizes.weights.channel;
  product.right.inner_step = sizes.weights.filter;
  product.right.tap_step = sizes.weights.tap;
  product.right.lines = sizes.filters;
  product.result.images = static_cast<T*>(of.input_gradient);
  product.result.addend = static_cast<const T*>(of.addend);
  product.result.steps = sizes.input;
  product.result.pixels = Divisor(std::int64_t{sizes.rows.input} * sizes.columns.input);
  product.result.rows = cut.rows;
  product.result.columns = cut.columns;
  product.cut = cut;
  product.slices = {
      static_cast<float*>(of.scratch) + weight_scratch_bytes<typename Tile::Arithmetic>(sizes) / sizeof(float),
      context.arrivals + kMostSlicedTiles};
  return product;
}

template <typename Of>
void launch_one(const Of& of, const StreamContext& context) {
  launch<compute_one<Of>>(of.cut.blocks(), context.stream, of);
}

// Tells whether channels and filters differ so much that no kernel is compiled for both gradients. Such convolutions
// are rare.
template <typename First, typename Second>
constexpr bool kIsRarePair =
    First::Tile::kRows >= 4 * Second::Tile::kColumns || Second::Tile::kColumns >= 4 * First::Tile::kRows;

template <typename First, typename Second>
void launch_both(const First& first, const Second& second, const StreamContext& context) {
  using Pixels = typename First::Left;
  using Lines = typename Second::Left;
  if constexpr ((Pixels::kChunk == 1 && Lines::kChunk == 1) || kIsRarePair<First, Second>) {
    launch_one(first, context);
    launch_one(second, context);
  } else if constexpr (Pixels::kChunk > 1 && Lines::kChunk > 1 && Pixels::kLanesAlongInner != Lines::kLanesAlongInner) {
    launch<compute_both<First, Second>>(first.cut.blocks() + second.cut.blocks(), context.stream, first, second);
  } else {
    fail(ErrorKind::kInternal, "the gradients of a convolution are read in two memory orders");
  }
}

template <typename Arithmetic>
std::size_t gradient_bytes(const ConvolutionSizes& sizes, bool with_input_gradient) {
  const std::size_t of_weights = weight_scratch_bytes<Arithmetic>(sizes);
  if (!with_input_gradient) return of_weights;
  return of_weights + with_product_of_input<Arithmetic>(sizes, [](auto tile, auto, const ProductCut& cut) {
           return slice_bytes<decltype(tile)>(cut);
         });
}

template <typename T, typename Arithmetic>
void enqueue_gradients_of(const ConvolutionSizes& sizes, const ConvolutionGradients& of, const StreamContext& context) {
  with_product_of_weights<Arithmetic>(sizes, [&](auto weight_tile, auto pixels, const ProductCut& weight_cut) {
    const auto weights = weight_product<T, decltype(weight_tile), decltype(pixels)>(sizes, of, weight_cut, context);
    if (of.input_gradient == nullptr) return launch_one(weights, context);
    with_product_of_input<Arithmetic>(sizes, [&](auto tile, auto lines, const ProductCut& cut) {
      const auto input = input_product<T, decltype(tile), decltype(lines)>(sizes, of, cut, context);
      launch_both(weights, input, context);
    });
  });
}

}  // namespace arbalest::engine::cuda
