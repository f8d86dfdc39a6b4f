// Maximum or average over a sliding window. Padding never wins a maximum and does not count in an average.
#pragma once

#include "engine/layout.h"
#include "engine/ops/window.h"

namespace arbalest::engine {

enum class PoolKind { kMax, kAverage };

struct Pool2dSpec {
  Layout input;  // [n, c, h, w] float32 or bfloat16; output [n, c, h', w'] alike
  PoolKind kind = PoolKind::kMax;
  Window window;
};

}  // namespace arbalest::engine
