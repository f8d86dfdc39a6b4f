// Gradient samples with a known noise scale, for tests of goodput.
#pragma once

#include <random>

#include "autotuner/noise_scale.h"

namespace arbalest::tests {

// The gradients of examples are normally distributed around G, with the variance S / dimensions in every direction.
struct GradientModel {
  double signal = 1.0;  // |G|^2
  double noise = 1.0;   // S
  int dimensions = 64;

  double noise_scale() const { return noise / signal; }
};

// Draws the measurements of `learners` learners in `rounds` rounds from their exact distribution. The mean gradient and
// the spread around it are independent, and their squares are sums of squares of normal numbers.
autotuner::GradientSample draw_sample(const GradientModel& model, int learners, double mini_batch, int rounds,
                                      std::mt19937_64& random);

}  // namespace arbalest::tests
