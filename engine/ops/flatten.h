// [n, c, h, w] -> [n, c*h*w] in canonical order.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

struct FlattenSpec {
  Layout input;  // [n, ...] float32 or bfloat16, like the output
};

}  // namespace arbalest::engine
