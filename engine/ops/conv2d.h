// Two-dimensional convolution (cross-correlation, as in every framework) with an optional bias.
//   y[n, o, i, j] = bias[o] + sum over c, r, s of x[n, first(o) + c, i', j'] w[o, c, r, s]
//   i' = i*stride - padding + r*dilation     j' = j*stride - padding + s*dilation
// The o filters and the input's channels are divided into `groups` equal parts, in order. A filter reads the channels
// of its own part, which begins at first(o). With as many groups as channels the convolution is depthwise.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/layout.h"
#include "engine/ops/activation.h"
#include "engine/ops/window.h"

namespace arbalest::engine {

struct Conv2dSpec {
  Layout input;  // [n, c, h, w] float32 or bfloat16; the output's type follows the precision
  // o; the output is [n, o, h', w'], weights [o, c / groups, kernel.height, kernel.width], bias [o]
  std::int64_t filters = 0;
  Window window;
  bool bias = true;
  // Applied to the output in the same pass; backward then reads the output.
  std::optional<ActivationFunction> activation = {};
  std::int64_t groups = 1;  // divides o and c
};

inline Shape weights_shape(const Conv2dSpec& spec) {
  const std::int64_t channels = spec.input.shape()[1];
  ARBALEST_CHECK(spec.groups > 0 && channels % spec.groups == 0 && spec.filters % spec.groups == 0);
  return {spec.filters, channels / spec.groups, spec.window.kernel.height, spec.window.kernel.width};
}

}  // namespace arbalest::engine
