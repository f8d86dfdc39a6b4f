// The sliding window of convolutions and poolings.
#pragma once

#include <cstdint>

#include "engine/error.h"
#include "engine/shape.h"

namespace arbalest::engine {

struct Extent2d {
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool operator==(const Extent2d&) const = default;
};

struct Window {
  Extent2d kernel;
  Extent2d stride;
  Extent2d padding{0, 0};  // zeros added on both sides
  bool operator==(const Window&) const = default;
};

// The window's positions on images [n, c, h, w], rounded down as PyTorch does; not positive where it does not fit.
inline Extent2d window_positions(const Shape& images, const Window& window) {
  const auto along = [](std::int64_t input, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return input + 2 * padding < kernel ? 0 : (input + 2 * padding - kernel) / stride + 1;
  };
  return {along(images[2], window.kernel.height, window.stride.height, window.padding.height),
          along(images[3], window.kernel.width, window.stride.width, window.padding.width)};
}

// What such an operator makes of `images`, which the window must fit: [n, channels, h', w'].
inline Shape window_output_shape(const Shape& images, const Window& window, std::int64_t channels) {
  ARBALEST_CHECK(images.rank() == 4 && channels > 0);
  const Extent2d positions = window_positions(images, window);
  ARBALEST_CHECK(positions.height > 0 && positions.width > 0);
  return {images[0], channels, positions.height, positions.width};
}

}  // namespace arbalest::engine
