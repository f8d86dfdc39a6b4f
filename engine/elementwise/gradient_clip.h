// The last step of engine/passes/gradient_clip.h, once the sum of squares is known.
#pragma once

#include <cmath>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// squares: sum of the gradient's squares. Returns NaN for NaN and 0 for infinity; the update then detects values that
// are not finite.
ARBALEST_HOST_DEVICE float clip_scale(double squares, float max_norm) {
  const double ratio = static_cast<double>(max_norm) / (std::sqrt(squares) + 1e-6);
  return ratio >= 1.0 ? 1.0F : static_cast<float>(ratio);
}

}  // namespace arbalest::engine::elementwise
