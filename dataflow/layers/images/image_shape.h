// Shape arithmetic for layers over images.
#pragma once

#include "engine/base/shape.h"
#include "engine/ops/window.h"

namespace arbalest::dataflow {

// Throws kInvalidJob if the input is not an image [n, c, h, w].
void check_images(const engine::Shape& input);

enum class PaddingMode {
  kExplicit,  // the window's own padding
  // Padding that gives the output ceil(input / stride) pixels. An odd pixel goes below or to the right.
  kSame,
};

// Returns the window for `input`, with the padding that `mode` asks for. Throws kInvalidJob if the input is not an
// image [n, c, h, w], or the window does not fit into it.
engine::Window place_window(const engine::Shape& input, const engine::Window& window, PaddingMode mode);

}  // namespace arbalest::dataflow
