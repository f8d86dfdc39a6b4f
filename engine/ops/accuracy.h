// Counts labeled examples whose label is among the k largest logits, for each k of a list. Of equal logits the first
// counts as larger. NaN is never among the largest, and a label whose logit is NaN is never right. Inputs: logits,
// labels. Output: a float32 [top.size()], each exact below 2^24; the loss's neighbors in StepResult::sums. Has no
// gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/layout.h"

namespace arbalest::engine {

inline constexpr int kMaxRankCounts = 6;

struct AccuracySpec {
  Layout logits;                        // [n, classes] float32 or bfloat16
  Layout labels;                        // [n] int32 in [0, classes), or kNoLabel
  std::vector<std::int32_t> top = {1};  // at least 1 each; at most kMaxRankCounts of them
};

}  // namespace arbalest::engine
