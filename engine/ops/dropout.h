// Inverted dropout. In training each element is zeroed with probability `ratio`, else scaled by 1 / (1 - ratio); at
// inference it is unchanged. The mask is a function of (seed, task, layer, element) and is never stored.
#pragma once

#include <cstdint>

#include "engine/layout.h"

namespace arbalest::engine {

struct DropoutSpec {
  Layout input;             // any shape, float32 or bfloat16, like the output; elements are numbered in canonical order
  float ratio = 0.5F;       // in [0, 1)
  std::uint32_t layer = 0;  // number of the layer in its graph
};

}  // namespace arbalest::engine
