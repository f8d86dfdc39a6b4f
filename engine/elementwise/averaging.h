// One element of model averaging (formulas: engine/ops/averaging.h, engine/ops/moving_average.h).
#pragma once

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

struct CentralTerms {
  float alpha;
  float central_momentum;  // mu
};

// Of elements that are running statistics.
ARBALEST_HOST_DEVICE CentralTerms statistics_terms(float mean_factor) { return {mean_factor, 0.0F}; }

// z + alpha S + mu (z - z-)
ARBALEST_HOST_DEVICE float next_central(float central, float previous, float sum, const CentralTerms& terms) {
  return central + terms.alpha * sum + terms.central_momentum * (central - previous);
}

ARBALEST_HOST_DEVICE float moved_average(float average, float value, float weight) {
  return weight == 1.0F ? value : average + weight * (value - average);
}

}  // namespace arbalest::engine::elementwise
