// The sliding window of convolutions and poolings.
#pragma once

#include <cstdint>

#include "engine/base/error.h"
#include "engine/base/shape.h"

namespace arbalest::engine {

struct Extent2d {
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool operator==(const Extent2d&) const = default;
};

struct Window {
  Extent2d kernel;
  Extent2d stride;
  Extent2d padding{0, 0};        // zeros added on both sides
  Extent2d extra_padding{0, 0};  // further zeros below and to the right only; negative: fewer there, at least -padding
  Extent2d dilation{1, 1};       // for convolutions: pixels from one tap of the kernel to the next
  bool operator==(const Window&) const = default;
};

// Pixels that the kernel spans.
inline Extent2d window_span(const Window& window) {
  return {(window.kernel.height - 1) * window.dilation.height + 1,
          (window.kernel.width - 1) * window.dilation.width + 1};
}

// Number of zeros below and to the right.
inline Extent2d padding_after(const Window& window) {
  return {window.padding.height + window.extra_padding.height, window.padding.width + window.extra_padding.width};
}

// Number of window positions on images [n, c, h, w], rounded down as in PyTorch; not positive if the window does not
// fit.
inline Extent2d window_positions(const Shape& images, const Window& window) {
  const auto along = [](std::int64_t padded, std::int64_t span, std::int64_t stride) {
    return padded < span ? 0 : (padded - span) / stride + 1;
  };
  const Extent2d span = window_span(window);
  const Extent2d after = padding_after(window);
  return {along(images[2] + window.padding.height + after.height, span.height, window.stride.height),
          along(images[3] + window.padding.width + after.width, span.width, window.stride.width)};
}

// Shape that such an operator computes from `images`, which the window must fit: [n, channels, h', w'].
inline Shape window_output_shape(const Shape& images, const Window& window, std::int64_t channels) {
  ARBALEST_CHECK(images.rank() == 4 && channels > 0);
  const Extent2d positions = window_positions(images, window);
  ARBALEST_CHECK(positions.height > 0 && positions.width > 0);
  return {images[0], channels, positions.height, positions.width};
}

}  // namespace arbalest::engine
