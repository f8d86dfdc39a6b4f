// Local response normalization of one element (engine/ops/local_response_norm.h), in float32.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

struct LocalResponse {
  // Channels on each side; 32 bits wide like the other members, so that kernel arguments have no padding.
  std::int32_t reach;
  float share;  // alpha / size
  float beta;
  float k;
};

// s for the sum of squares of the neighbors.
ARBALEST_HOST_DEVICE float response_scale(const LocalResponse& of, float squares) { return of.k + of.share * squares; }

// s^-beta. For the usual beta it uses square roots: a vector of them takes the time of one power.
ARBALEST_HOST_DEVICE float response_factor(const LocalResponse& of, float scale) {
  if (of.beta == 0.75F) {
    const float root = std::sqrt(scale);
    return 1.0F / (root * std::sqrt(root));
  }
  return std::pow(scale, -of.beta);
}

// dx. factor: s^-beta; neighbors: sum over the neighbors of dy x s^(-beta - 1).
ARBALEST_HOST_DEVICE float response_gradient(const LocalResponse& of, float x, float dy, float factor,
                                             float neighbors) {
  return dy * factor - 2.0F * of.share * of.beta * x * neighbors;
}

}  // namespace arbalest::engine::elementwise
