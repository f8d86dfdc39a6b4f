// Two-dimensional convolution (cross-correlation, as every framework has it) with an optional bias.
//   y[n, o, i, j] = bias[o] + sum over c, r, s of x[n, c, i*stride - padding + r, j*stride - padding + s] * w[o, c, r,
//   s]
#pragma once

#include <cstdint>
#include <optional>

#include "engine/layout.h"
#include "engine/ops/activation.h"
#include "engine/ops/window.h"

namespace arbalest::engine {

struct Conv2dSpec {
  Layout input;              // [n, c, h, w] float32 or bfloat16; the output's type follows the precision
  std::int64_t filters = 0;  // o; output [n, o, h', w'], weights [o, c, kernel.height, kernel.width], bias [o]
  Window window;
  bool bias = true;
  std::optional<ActivationKind> activation = {};  // applied to the output in the same pass; backward reads the output
};

}  // namespace arbalest::engine
