// LeNet's loss and gradient in double precision, made of the reference operators.
#pragma once

#include <span>
#include <vector>

#include "tests/support/reference_ops.h"

namespace arbalest::tests {

struct LossAndGradient {
  double loss_sum = 0.0;  // over the mini-batch
  Values gradient;        // of the mean; in the order of the parameters
};

// `parameters`: conv1, conv2, dense1, dense2, each weights and then bias, in canonical order. `images`: [n, 1, 28, 28].
LossAndGradient reference_lenet(const Values& parameters, const Values& images, const Labels& labels);

}  // namespace arbalest::tests
