// Padding for cuDNN's convolutions, which pad opposite sides alike: what one side has more becomes part of the images.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "engine/base/shape.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cuda {

struct EvenlyPadded {
  Shape images;     // [n, c, h, w] with the zeros that are on one side only
  Extent2d before;  // those of them above and to the left
  Window window;    // with the padding that opposite sides have in common
};

// A window on `images` reads what the returned window reads on the returned images.
inline EvenlyPadded pad_evenly(const Shape& images, const Window& window) {
  const auto missing = [](std::int64_t extra) { return std::max<std::int64_t>(-extra, 0); };  // behind the image
  EvenlyPadded result;
  result.before = {missing(window.extra_padding.height), missing(window.extra_padding.width)};
  result.images = {images[0], images[1], images[2] + std::abs(window.extra_padding.height),
                   images[3] + std::abs(window.extra_padding.width)};
  result.window = window;
  result.window.padding = {window.padding.height - result.before.height, window.padding.width - result.before.width};
  result.window.extra_padding = {0, 0};
  return result;
}

}  // namespace arbalest::engine::cuda
