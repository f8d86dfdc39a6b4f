// The layout of a convolution's weights that are transformed for BlockedWinograd. Only inference uses it: the way back
// to canonical order does not exist.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine::cpu {

// `weights`: [filters, c, kernel, kernel]
Layout winograd_weights_layout(const Shape& weights);
bool is_winograd_weights(const Layout& layout);

// Transforms weights in canonical order. `to` has the layout winograd_weights_layout(weights).
void transform_winograd_weights(const Shape& weights, const float* from, float* to);

}  // namespace arbalest::engine::cpu
