// One element of model averaging (formulas: engine/ops/averaging.h).
#pragma once

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// z + alpha S + mu (z - z-)
ARBALEST_HOST_DEVICE float next_central(float central, float previous, float sum, float alpha, float central_momentum) {
  return central + alpha * sum + central_momentum * (central - previous);
}

}  // namespace arbalest::engine::elementwise
