// Shape arithmetic that layers over images share.
#pragma once

#include "engine/ops/window.h"
#include "engine/shape.h"

namespace arbalest::dataflow {

// Throws kInvalidJob if the input is no image [n, c, h, w].
void check_images(const engine::Shape& input);

// Output height and width of a window sliding over `input`. Throws kInvalidJob if the input is no image [n, c, h, w] or
// the window does not fit into it.
engine::Extent2d window_output(const engine::Shape& input, const engine::Window& window);

}  // namespace arbalest::dataflow
