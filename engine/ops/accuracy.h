// Number of labeled examples whose largest logit (the first, in a tie) is their label's. NaN is never largest.
// Inputs: logits, labels. Output: StepResult::correct, a float32 [1]. Has no gradient.
#pragma once

#include "engine/layout.h"

namespace arbalest::engine {

struct AccuracySpec {
  Layout logits;  // [n, classes] float32 or bfloat16
  Layout labels;  // [n] int32 in [0, classes), or kNoLabel
};

}  // namespace arbalest::engine
