// Counts labeled examples whose label has the largest logit, and those whose label is among the kTopRanks largest. Of
// equal logits the first counts as larger. NaN is never among the largest, and a label whose logit is NaN is never
// right. Inputs: logits, labels. Output: StepResult::correct and correct_top5, a float32 [2]. Has no gradient.
#pragma once

#include "engine/layout.h"

namespace arbalest::engine {

inline constexpr int kTopRanks = 5;

struct AccuracySpec {
  Layout logits;  // [n, classes] float32 or bfloat16
  Layout labels;  // [n] int32 in [0, classes), or kNoLabel
};

}  // namespace arbalest::engine
