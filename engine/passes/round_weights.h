// Rounds a flat vector to low precision. An update (engine/passes/weight_update.h) rounds its own result, so this pass
// is for vectors that other tasks have written.
#pragma once

#include <cstdint>

#include "engine/base/bfloat16.h"

namespace arbalest::engine {

struct RoundWeights {
  const float* weights = nullptr;
  BFloat16* rounded = nullptr;  // rounded to nearest, ties to even
  std::int64_t elements = 0;
};

}  // namespace arbalest::engine
