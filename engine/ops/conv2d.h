// Two-dimensional convolution (cross-correlation, as every framework has it) with an optional bias.
//   y[n, o, i, j] = bias[o] + sum over c, r, s of
//                   x[n, first(o) + c, i*stride - padding + r*dilation, j*stride - padding + s*dilation] * w[o, c, r,
//                   s]
// The o filters and the input's channels are cut into `groups` equal parts, in order; a filter reads the channels of
// its own part, from first(o) on. As many groups as channels: a depthwise convolution.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/layout.h"
#include "engine/ops/activation.h"
#include "engine/ops/window.h"

namespace arbalest::engine {

struct Conv2dSpec {
  Layout input;  // [n, c, h, w] float32 or bfloat16; the output's type follows the precision
  // o; output [n, o, h', w'], weights [o, c / groups, kernel.height, kernel.width], bias [o]
  std::int64_t filters = 0;
  Window window;
  bool bias = true;
  std::optional<ActivationFunction> activation =
      {};                   // applied to the output in the same pass; backward reads the output
  std::int64_t groups = 1;  // divides o and c
};

inline Shape weights_shape(const Conv2dSpec& spec) {
  const std::int64_t channels = spec.input.shape()[1];
  ARBALEST_CHECK(spec.groups > 0 && channels % spec.groups == 0 && spec.filters % spec.groups == 0);
  return {spec.filters, channels / spec.groups, spec.window.kernel.height, spec.window.kernel.width};
}

}  // namespace arbalest::engine
