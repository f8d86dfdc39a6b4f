// Maximum or average over a sliding window without dilation. Padding never is a maximum. In an average it is ignored,
// or counts as zeros.
#pragma once

#include "engine/base/layout.h"
#include "engine/ops/window.h"

namespace arbalest::engine {

enum class PoolKind { kMax, kAverage };

struct Pool2dSpec {
  Layout input;  // [n, c, h, w] float32 or bfloat16; output [n, c, h', w'] of the same type
  PoolKind kind = PoolKind::kMax;
  Window window;               // must cover a pixel of the input at each position
  bool count_padding = false;  // whether padding counts in averages
};

}  // namespace arbalest::engine
