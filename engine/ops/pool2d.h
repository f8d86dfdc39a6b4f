// Maximum or average over a sliding window without dilation. Padding never wins a maximum; in an average it does not
// count, or as zeros.
#pragma once

#include "engine/layout.h"
#include "engine/ops/window.h"

namespace arbalest::engine {

enum class PoolKind { kMax, kAverage };

struct Pool2dSpec {
  Layout input;  // [n, c, h, w] float32 or bfloat16; output [n, c, h', w'] alike
  PoolKind kind = PoolKind::kMax;
  Window window;               // covers a pixel of the input at each of its positions
  bool count_padding = false;  // in averages
};

}  // namespace arbalest::engine
