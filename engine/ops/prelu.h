// Parametric ReLU (He et al., 2015), with one trained slope a_c for each channel c, as torch.nn.PReLU(channels):
//   y = x if x > 0, else a_c x
// The gradient of the input is dx = dy if x > 0, else a_c dy. That of the slope is the sum of dy x over the channel's
// numbers that are not above 0. NaN stays NaN.
//
// Parameter: the slopes [c], float32.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

struct PReluSpec {
  Layout input;  // [n, c] or [n, c, h, w], float32 or bfloat16, like the output
};

}  // namespace arbalest::engine
