// Rounds a flat vector to low precision, after something other than an update (engine/passes/weight_update.h) has
// written it.
#pragma once

#include <cstdint>

#include "engine/bfloat16.h"

namespace arbalest::engine {

struct RoundWeights {
  const float* weights = nullptr;
  BFloat16* rounded = nullptr;  // rounded to nearest, ties to even
  std::int64_t elements = 0;
};

}  // namespace arbalest::engine
