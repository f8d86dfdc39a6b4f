// Softmax and cross entropy in one: for logits a [n, classes] and labels y [n], the output is the sum over labeled
// examples of log(sum_c exp(a_c)) - a_y; the gradient is that of the *mean* over labeled examples,
// (softmax(a)_c - [c = y]) / labeled. In training a part of the target, `label_smoothing`, is shared out to all classes
// alike (Szegedy et al., 2016): the loss is that of the target (1 - smoothing) [c = y] + smoothing / classes instead of
// [c = y]. At inference nothing is smoothed. A label of -1 marks an example that does not count (a padded batch).
// Training multiplies both by `weight`; with several losses (PrepareOptions::adds_to_loss) the outputs are added up.
// Inputs: logits, labels. Output: StepResult::loss_sum, a float32 [1].
#pragma once

#include "engine/layout.h"

namespace arbalest::engine {

inline constexpr std::int32_t kNoLabel = -1;

struct SoftmaxCrossEntropySpec {
  Layout logits;                 // [n, classes] float32 or bfloat16
  Layout labels;                 // [n] int32 in [0, classes), or kNoLabel
  float weight = 1.0F;           // above 0; at inference it is 1
  float label_smoothing = 0.0F;  // in [0, 1)
};

// What the target is of a class that is not the label.
inline float target_of_others(const SoftmaxCrossEntropySpec& spec) {
  return spec.label_smoothing / static_cast<float>(spec.logits.shape()[1]);
}

}  // namespace arbalest::engine
