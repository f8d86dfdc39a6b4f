// Parametric ReLU of one element (engine/ops/prelu.h), in float32.
#pragma once

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

ARBALEST_HOST_DEVICE float prelu(float x, float slope) { return x > 0.0F ? x : slope * x; }

// dx
ARBALEST_HOST_DEVICE float prelu_gradient(float x, float slope, float dy) { return x > 0.0F ? dy : slope * dy; }

// The element's term of the sum that is the slope's gradient.
ARBALEST_HOST_DEVICE float prelu_slope_term(float x, float dy) { return x > 0.0F ? 0.0F : dy * x; }

}  // namespace arbalest::engine::elementwise
