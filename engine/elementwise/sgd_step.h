// One element of SGD with momentum, decay and the correction of model averaging (formulas: engine/ops/sgd_update.h).
// No fused multiply-add: host and device must give the same bits.
#pragma once

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

struct SgdFactors {
  float learning_rate;  // gamma times the range's multiplier
  float decay;          // lambda times the range's multiplier
  float momentum;       // m
  float alpha;          // pull towards the central model
};

// gamma (g + lambda w)
ARBALEST_HOST_DEVICE float step_of(float weight, float gradient, const SgdFactors& factors) {
  return factors.learning_rate * (gradient + factors.decay * weight);
}

// A step larger than this is taken for divergence: squares of such numbers overflow. NaN compares false.
ARBALEST_HOST_DEVICE bool is_refused(float weight, float gradient, const SgdFactors& factors) {
  return !(__builtin_fabsf(step_of(weight, gradient, factors)) < 1e18F);
}

// v <- m v - gamma (g + lambda w)
ARBALEST_HOST_DEVICE float next_momentum(float weight, float momentum, float gradient, const SgdFactors& factors) {
  return factors.momentum * momentum - step_of(weight, gradient, factors);
}

// c = alpha (w - z)
ARBALEST_HOST_DEVICE float correction(float weight, float central, const SgdFactors& factors) {
  return factors.alpha * (weight - central);
}

}  // namespace arbalest::engine::elementwise
