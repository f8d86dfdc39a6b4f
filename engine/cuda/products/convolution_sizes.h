// The extents and the memory order of a convolution, in 32-bit numbers, as its kernels get them. A dense layer is the
// convolution of one image, whose pixels are the examples, by windows of one pixel: its features are the channels, its
// units the filters.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/layout.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cuda {

// Elements from one image, channel and pixel to the next. The pixels of an image are numbered row by row.
struct ImageSteps {
  int image = 0;
  int channel = 0;
  int pixel = 0;
};

struct FilterSteps {
  int filter = 0;
  int channel = 0;
  int tap = 0;  // the pixels of a window are numbered row by row
};

struct Side {
  int input = 1;  // extents
  int output = 1;
  int kernel = 1;
  int stride = 1;
  int padding = 0;  // before the first pixel
  int dilation = 1;
};

struct ConvolutionSizes {
  int images = 0;
  int channels = 0;
  int filters = 0;
  Side rows;
  Side columns;
  ImageSteps input;
  ImageSteps output;
  FilterSteps weights;

  int taps() const { return rows.kernel * columns.kernel; }
  std::int64_t input_pixels() const { return std::int64_t{images} * rows.input * columns.input; }
  std::int64_t output_pixels() const { return std::int64_t{images} * rows.output * columns.output; }
};

// None if a tensor has 2^31 elements or more. The layouts are those of layout.h: input [n, c, h, w], weights
// [o, c, kernel], output [n, o, h', w'].
std::optional<ConvolutionSizes> convolution_sizes(const Layout& input, const Layout& weights, const Layout& output,
                                                  const Window& window);
// The same for input [n, ...], weights [units, ...] and output [n, units]. The features of input and weights are in one
// order.
std::optional<ConvolutionSizes> dense_sizes(const Layout& input, const Layout& weights, std::int64_t units);

}  // namespace arbalest::engine::cuda
