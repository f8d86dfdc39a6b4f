// The inner product of two vectors of each example: y[n, 0] = sum over f of a[n, f] b[n, f], plus one bias for all
// examples, if there is one. Inputs: a, b.
#pragma once

#include "engine/layout.h"

namespace arbalest::engine {

struct InnerProductSpec {
  Layout a;           // [n, f] float32 or bfloat16; bfloat16 if either is, so is the output [n, 1]
  Layout b;           // of the same shape
  bool bias = false;  // a parameter [1]
};

}  // namespace arbalest::engine
