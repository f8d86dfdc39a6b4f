// Shape arithmetic that layers over images share.
#pragma once

#include "engine/ops/window.h"
#include "engine/shape.h"

namespace arbalest::dataflow {

// Throws kInvalidJob if the input is no image [n, c, h, w].
void check_images(const engine::Shape& input);

enum class PaddingMode {
  kExplicit,  // the window's
  kSame,  // so much that the output has ceil(input / stride) pixels; of an odd number one more below or to the right
};

// The window as it slides over `input`, with the padding that `mode` asks for.
// Throws kInvalidJob if the input is no image [n, c, h, w], or the window does not fit into it.
engine::Window place_window(const engine::Shape& input, const engine::Window& window, PaddingMode mode);

}  // namespace arbalest::dataflow
