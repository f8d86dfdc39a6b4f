// Softmax and cross entropy in one operator. For logits a [n, classes] and labels y [n], the output is the sum over
// labeled examples of log(sum_c exp(a_c)) - a_y. The gradient is that of the *mean* over labeled examples,
// (softmax(a)_c - [c = y]) / labeled.
//
// In training, label smoothing (Szegedy et al., 2016) replaces the target [c = y] by (1 - label_smoothing) [c = y] +
// label_smoothing / classes. At inference there is no smoothing. A label of -1 marks an example that does not count (in
// a padded batch). Training multiplies output and gradient by `weight`; with several losses
// (PrepareOptions::adds_to_loss) the losses are summed.
//
// The operator also counts the examples whose label is among the k largest logits, for each k of `top`, as the operator
// of engine/ops/accuracy.h does: with both in one kernel, a step has a kernel less.
//
// Inputs: logits, labels. Output: a float32 [1 + top.size()]: the loss, StepResult::sums[kLossSum], and behind it the
// counts.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/layout.h"

namespace arbalest::engine {

inline constexpr std::int32_t kNoLabel = -1;

struct SoftmaxCrossEntropySpec {
  Layout logits;                    // [n, classes] float32 or bfloat16
  Layout labels;                    // [n] int32 in [0, classes), or kNoLabel
  float weight = 1.0F;              // above 0; not used at inference
  float label_smoothing = 0.0F;     // in [0, 1)
  std::vector<std::int32_t> top{};  // as in AccuracySpec; empty: counts nothing
};

// Target of a class that is not the label.
inline float target_of_others(const SoftmaxCrossEntropySpec& spec) {
  return spec.label_smoothing / static_cast<float>(spec.logits.shape()[1]);
}

}  // namespace arbalest::engine
