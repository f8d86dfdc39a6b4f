// The inner product of two vectors per example: y[n, 0] = sum over f of a[n, f] b[n, f], plus an optional bias that all
// examples share. Inputs: a, b.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

struct InnerProductSpec {
  Layout a;           // [n, f] float32 or bfloat16; the output [n, 1] is bfloat16 if a or b is
  Layout b;           // of the same shape
  bool bias = false;  // a parameter [1]
};

}  // namespace arbalest::engine
