// The squared error of predictions p [n, 1] of numbers t [n]: the output is the sum over labeled examples of (p - t)^2;
// the gradient is that of the *mean* over labeled examples, 2 (p - t) / labeled, as PyTorch's MSELoss has it (Caffe's
// EuclideanLoss is half of that). A label that is NaN marks an example that does not count (a padded batch).
// Training multiplies both by `weight`; with several losses (PrepareOptions::adds_to_loss) the outputs are added up.
// Inputs: predictions, labels. Output: StepResult::loss_sum, a float32 [1].
#pragma once

#include "engine/layout.h"

namespace arbalest::engine {

struct SquaredErrorSpec {
  Layout predictions;   // [n, 1] float32 or bfloat16
  Layout labels;        // [n] float32
  float weight = 1.0F;  // above 0; at inference it is 1
};

}  // namespace arbalest::engine
