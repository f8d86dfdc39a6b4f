// The order of logits by which a label's rank is counted.
#pragma once

#include <cstdint>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// Whether the logit at `place` is larger than the label's, or equal and before it. False if either is NaN.
ARBALEST_HOST_DEVICE bool ranks_before(float logit, std::int64_t place, float logit_of_label, std::int64_t label) {
  return logit > logit_of_label || (logit == logit_of_label && place < label);
}

}  // namespace arbalest::engine::elementwise
