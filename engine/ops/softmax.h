// Probabilities of logits a [n, classes]: exp(a_c) / sum_d exp(a_d). The backward pass reads the output p:
// p_c (dp_c - sum_d p_d dp_d).
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

struct SoftmaxSpec {
  Layout input;  // [n, classes] float32 or bfloat16, like the output
};

}  // namespace arbalest::engine
