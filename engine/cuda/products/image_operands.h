// The operands of convolutions as products of matrices (tiled_product.h).
//   output[pixel, filter]         = sum over (tap, channel) of patch * weight
//   input gradient[pixel, channel] = sum over (tap, filter) of output gradient * weight
//   weight gradient[filter, (tap, channel)] = sum over pixels of output gradient * patch
// A patch is what a window reads at one position; zeros stand for pixels outside the image. A k that counts channels or
// pixels of a row is padded to a multiple of kChunk, with zeros. Below, `T` is the type of images and weights in
// memory.
#pragma once

#include <cstdint>

#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/operators/activation.h"
#include "engine/cuda/products/convolution_sizes.h"
#include "engine/cuda/products/divisor.h"
#include "engine/cuda/products/tiled_product.h"

namespace arbalest::engine::cuda {

template <int kChunk>
constexpr int padded_to_chunks(int extent) {
  return (extent + kChunk - 1) / kChunk * kChunk;
}

inline constexpr int kLongestPadded = 4;  // longer chunks are whole, or not read at all

// values[i] = from[i * step] for the first `count` of them, which may be negative; zeros for the others. in_words: step
// is 1, count is kChunk, and `from` is aligned to the chunk or to 16 bytes.
template <int kChunk, typename T>
__device__ void read_chunk(const T* from, int step, int count, bool in_words, float (&values)[kChunk]) {
  if (count <= 0) {
    for (float& value : values) value = 0.0F;
  } else if (in_words) {
    const Floats<kChunk> all = load_group<kChunk>(from, 0);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) values[i] = all.at[i];
  } else {
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      values[i] = kChunk > kLongestPadded || i < count ? elementwise::load(from[i * step]) : 0.0F;
  }
}

// A pixel of many images, by its number.
struct PixelPlace {
  int image;
  int row;
  int column;
};

struct PixelNumbers {
  Divisor of_image;
  Divisor of_row;

  PixelNumbers() = default;
  PixelNumbers(int rows, int columns) : of_image(std::int64_t{rows} * columns), of_row(columns) {}
  __device__ PixelPlace place(int number) const {
    const int image = of_image.quotient(number);
    const int pixel = number - image * of_image.value();
    const int row = of_row.quotient(pixel);
    return {image, row, pixel - row * of_row.value()};
  }
};

// A number of a (tap, line), where lines are channels or filters.
struct TapPlace {
  int row;
  int column;
  int tap;
  int line;
};

struct TapNumbers {
  Divisor of_tap;  // lines, padded
  Divisor of_row;  // columns of the kernel

  TapNumbers() = default;
  TapNumbers(int lines, int kernel_columns) : of_tap(lines), of_row(kernel_columns) {}
  __device__ TapPlace place(int number) const {
    const int tap = of_tap.quotient(number);
    const int row = of_row.quotient(tap);
    return {row, tap - row * of_row.value(), tap, number - tap * of_tap.value()};
  }
};

__device__ inline bool is_within(int place, int extent) {
  return static_cast<unsigned>(place) < static_cast<unsigned>(extent);
}

// What the patches of a convolution's input need: the corner of a patch, and a tap of it.
template <typename T>
struct InputPatches {
  const T* images = nullptr;
  ConvolutionSizes sizes = {};

  struct Corner {
    int row;
    int column;
    int at;  // offset of the corner, which may lie outside the image
  };
  struct Tap {
    int row;
    int column;
    int at;  // offset from the corner
    int channel;
  };

  __device__ Corner corner(const PixelPlace& of) const {
    const int row = of.row * sizes.rows.stride - sizes.rows.padding;
    const int column = of.column * sizes.columns.stride - sizes.columns.padding;
    return {row, column, of.image * sizes.input.image + (row * sizes.columns.input + column) * sizes.input.pixel};
  }
  __device__ Tap tap(const TapPlace& of) const {
    const int row = of.row * sizes.rows.dilation;
    const int column = of.column * sizes.columns.dilation;
    return {row, column, (row * sizes.columns.input + column) * sizes.input.pixel + of.line * sizes.input.channel,
            of.line};
  }
};

// Patches as rows: the left operand of the output.
template <typename T, int kChunkOf, bool kAlongInner>
struct PatchRows : InputPatches<T> {
  using typename InputPatches<T>::Corner;
  using typename InputPatches<T>::Tap;
  using InputPatches<T>::sizes;
  static constexpr int kChunk = kChunkOf;  // channels
  static constexpr bool kLanesAlongInner = kAlongInner;
  using Outer = Corner;
  using Inner = Tap;

  PixelNumbers pixels = {};
  TapNumbers taps = {};
  bool in_words = false;

  __device__ Outer outer(int i) const { return this->corner(pixels.place(i)); }
  __device__ Inner inner(int k) const { return this->tap(taps.place(k)); }
  __device__ void read(const Outer& of, const Inner& at, float (&values)[kChunk]) const {
    const bool is_inside =
        is_within(of.row + at.row, sizes.rows.input) && is_within(of.column + at.column, sizes.columns.input);
    read_chunk<kChunk>(this->images + of.at + at.at, sizes.input.channel, is_inside ? sizes.channels - at.channel : 0,
                       in_words, values);
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(PatchRows& of, Visitor&& visit) {
    visit(of.images);
  }
};

// Patches as columns, and a column of ones for the bias behind them: the right operand of the weight gradient.
template <typename T, int kChunkOf, bool kAlongInner>
struct PatchColumns : InputPatches<T> {
  using typename InputPatches<T>::Corner;
  using typename InputPatches<T>::Tap;
  using InputPatches<T>::sizes;
  static constexpr int kChunk = kChunkOf;  // pixels of a row
  static constexpr bool kLanesAlongInner = kAlongInner;
  using Outer = Tap;
  using Inner = Corner;

  PixelNumbers pixels = {};
  TapNumbers taps = {};

  __device__ Outer outer(int i) const {
    Tap of = this->tap(taps.place(i));
    if (i >= sizes.channels * taps.of_row.value() * sizes.rows.kernel) of.channel = kOnes;
    return of;
  }
  __device__ Inner inner(int k) const { return this->corner(pixels.place(k)); }
  __device__ void read(const Outer& of, const Inner& at, float (&values)[kChunk]) const {
    const int column = at.column + of.column;
    const bool is_row = is_within(at.row + of.row, sizes.rows.input);
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const int step = i * sizes.columns.stride;
      const bool is_inside = is_row && is_within(column + step, sizes.columns.input);
      values[i] = of.channel == kOnes ? 1.0F
                  : is_inside         ? elementwise::load(this->images[at.at + of.at + step * sizes.input.pixel])
                                      : 0.0F;
    }
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(PatchColumns& of, Visitor&& visit) {
    visit(of.images);
  }

 private:
  static constexpr int kOnes = -1;  // in place of a channel
};

// Weights: columns are filters and k counts channels, or the other way around.
template <typename T, int kChunkOf, bool kAlongInner>
struct WeightColumns {
  static constexpr int kChunk = kChunkOf;
  static constexpr bool kLanesAlongInner = kAlongInner;
  struct Inner {
    int at;
    int line;
  };
  using Outer = int;

  const T* weights = nullptr;
  TapNumbers taps = {};
  int outer_step = 0;
  int inner_step = 0;
  int tap_step = 0;
  int lines = 0;  // channels or filters that k counts
  bool in_words = false;

  __device__ Outer outer(int i) const { return i * outer_step; }
  __device__ Inner inner(int k) const {
    const TapPlace of = taps.place(k);
    return {of.tap * tap_step + of.line * inner_step, of.line};
  }
  __device__ void read(const Outer& of, const Inner& at, float (&values)[kChunk]) const {
    read_chunk<kChunk>(weights + of + at.at, inner_step, lines - at.line, in_words, values);
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(WeightColumns& of, Visitor&& visit) {
    visit(of.weights);
  }
};

// The gradient of a convolution's output before its activation. kDifferentiates: whether there may be one.
template <typename T, bool kDifferentiates>
struct OutputGradient {
  const T* gradient = nullptr;
  const T* output = nullptr;  // null: no activation
  Derivative derivative = {};

  template <int kChunk>
  __device__ void read(int at, int step, int count, bool in_words, float (&values)[kChunk]) const {
    read_chunk<kChunk>(gradient + at, step, count, in_words, values);
    if constexpr (kDifferentiates) {
      if (output == nullptr || count <= 0) return;
      float outputs[kChunk];
      read_chunk<kChunk>(output + at, step, count, in_words, outputs);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) values[i] = derivative.gradient(outputs[i], values[i]);
    }
  }
};

// The output pixels that read an input pixel, as rows: the left operand of the input gradient.
template <typename T, int kChunkOf, bool kAlongInner, bool kDifferentiates>
struct GradientPatchRows : OutputGradient<T, kDifferentiates> {
  static constexpr int kChunk = kChunkOf;  // filters
  static constexpr bool kLanesAlongInner = kAlongInner;
  struct Outer {
    int row;  // of the input, padding included
    int column;
    int at;
  };
  struct Inner {
    int row;
    int column;
    int at;
    int filter;
  };

  ConvolutionSizes sizes = {};
  PixelNumbers pixels = {};
  TapNumbers taps = {};
  Divisor row_stride = {};
  Divisor column_stride = {};
  bool in_words = false;

  __device__ Outer outer(int i) const {
    const PixelPlace of = pixels.place(i);
    return {of.row + sizes.rows.padding, of.column + sizes.columns.padding, of.image * sizes.output.image};
  }
  __device__ Inner inner(int k) const {
    const TapPlace of = taps.place(k);
    return {of.row * sizes.rows.dilation, of.column * sizes.columns.dilation, of.line * sizes.output.channel, of.line};
  }
  __device__ void read(const Outer& of, const Inner& at, float (&values)[kChunk]) const {
    const int row = of.row - at.row;
    const int column = of.column - at.column;
    const int output_row = row_stride.quotient(row < 0 ? 0 : row);
    const int output_column = column_stride.quotient(column < 0 ? 0 : column);
    const bool is_read = row == output_row * row_stride.value() && column == output_column * column_stride.value() &&
                         output_row < sizes.rows.output && output_column < sizes.columns.output;
    const int pixel = output_row * sizes.columns.output + output_column;
    OutputGradient<T, kDifferentiates>::template read<kChunk>(
        of.at + at.at + pixel * sizes.output.pixel, sizes.output.channel, is_read ? sizes.filters - at.filter : 0,
        in_words, values);
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(GradientPatchRows& of, Visitor&& visit) {
    visit(of.gradient);
    visit(of.output);
  }
};

// Filters as rows: the left operand of the weight gradient.
template <typename T, int kChunkOf, bool kAlongInner, bool kDifferentiates>
struct GradientRows : OutputGradient<T, kDifferentiates> {
  static constexpr int kChunk = kChunkOf;  // pixels of a row
  static constexpr bool kLanesAlongInner = kAlongInner;
  struct Inner {
    int at;
    int count;
  };
  using Outer = int;

  ConvolutionSizes sizes = {};
  PixelNumbers pixels = {};
  bool in_words = false;

  __device__ Outer outer(int i) const { return i * sizes.output.channel; }
  __device__ Inner inner(int k) const {
    const PixelPlace of = pixels.place(k);
    return {of.image * sizes.output.image + (of.row * sizes.columns.output + of.column) * sizes.output.pixel,
            sizes.columns.output - of.column};
  }
  __device__ void read(const Outer& of, const Inner& at, float (&values)[kChunk]) const {
    OutputGradient<T, kDifferentiates>::template read<kChunk>(of + at.at, sizes.output.pixel, at.count, in_words,
                                                              values);
  }

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(GradientRows& of, Visitor&& visit) {
    visit(of.gradient);
    visit(of.output);
  }
};

}  // namespace arbalest::engine::cuda
