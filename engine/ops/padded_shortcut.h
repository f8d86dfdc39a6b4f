// The shortcut without parameters between residual blocks of different shape (He et al., 2015, option A). It takes
// every stride-th pixel in both directions, beginning with the first. It adds (channels - c) / 2 channels of zeros
// before the input's channels and the rest of the zeros after them.
#pragma once

#include <cstdint>

#include "engine/base/layout.h"

namespace arbalest::engine {

struct PaddedShortcutSpec {
  Layout input;               // [n, c, h, w] float32 or bfloat16; output [n, channels, h', w'] of the same type
  std::int64_t channels = 0;  // channels of the output, at least c
  std::int64_t stride = 1;
};

// h' = ceil(h / stride), w' = ceil(w / stride).
inline Shape padded_shortcut_shape(const Shape& input, std::int64_t channels, std::int64_t stride) {
  return {input[0], channels, (input[2] + stride - 1) / stride, (input[3] + stride - 1) / stride};
}

}  // namespace arbalest::engine
