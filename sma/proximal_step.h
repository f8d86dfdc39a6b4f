// One coordinate's step of delayed block proximal gradient (Li, Andersen, Smola, Yu: "Communication efficient
// distributed machine learning with the parameter server", NIPS 2014).
#pragma once

#include <algorithm>
#include <cmath>

namespace arbalest::sma {

// Coordinate j of the objective f(w) + lambda |w_j|.
struct Coordinate {
  double weight = 0.0;
  double gradient = 0.0;   // G = df/dw_j, perhaps of older weights
  double curvature = 0.0;  // u = U / eta; U bounds the second derivative for steps of at most `bound`
  double lambda = 0.0;     // at least 0
};

// A curvature of 0 (rows that are far on the right side) gives a step of the full bound.
inline constexpr double kLeastCurvature = 1e-20;

// Returns the step of the weight: the soft threshold of w - G/u at lambda/u, minus w, clipped to [-bound, bound].
//   G + lambda <= u w: d = -(G + lambda) / u     G - lambda >= u w: d = -(G - lambda) / u     else d = -w
inline double proximal_step(const Coordinate& at, double bound) {
  const double u = std::max(at.curvature, kLeastCurvature);
  double step = -at.weight;
  if (at.gradient + at.lambda <= u * at.weight) {
    step = -(at.gradient + at.lambda) / u;
  } else if (at.gradient - at.lambda >= u * at.weight) {
    step = -(at.gradient - at.lambda) / u;
  }
  return std::clamp(step, -bound, bound);
}

// The bound of the next step: delta <- min(most, 2 |d| + 0.1).
inline double next_bound(double step, double most) { return std::min(most, 2.0 * std::abs(step) + 0.1); }

// Returns the violation of the conditions of Karush, Kuhn and Tucker: 0 at the minimum of the objective.
inline double kkt_violation(const Coordinate& at) {
  if (at.weight > 0.0) return std::abs(at.gradient + at.lambda);
  if (at.weight < 0.0) return std::abs(at.gradient - at.lambda);
  return std::max(0.0, std::abs(at.gradient) - at.lambda);
}

// Returns whether the filter drops the coordinate: it is zero, and |G| is below lambda by more than `margin`.
inline bool is_filtered(const Coordinate& at, double margin) {
  return at.weight == 0.0 && std::abs(at.gradient) < at.lambda - margin;
}

}  // namespace arbalest::sma
