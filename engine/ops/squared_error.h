// The squared error of predictions p [n, 1] and numbers t [n]. The output is the sum over labeled examples of (p -
// t)^2. The gradient is that of the *mean* over labeled examples, 2 (p - t) / labeled, as in PyTorch's MSELoss (Caffe's
// EuclideanLoss is half of that). A label that is NaN marks an example that does not count (in a padded batch).
// Training multiplies output and gradient by `weight`; with several losses (PrepareOptions::adds_to_loss) the outputs
// are summed. Inputs: predictions, labels. Output: StepResult::sums[kLossSum], a float32 [1].
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

struct SquaredErrorSpec {
  Layout predictions;   // [n, 1] float32 or bfloat16
  Layout labels;        // [n] float32
  float weight = 1.0F;  // above 0; not used at inference
};

}  // namespace arbalest::engine
