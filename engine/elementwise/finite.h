// Tests for infinity and NaN by the exponent bits, so fast-math options of compilers do not matter.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// Returns 1 if `value` is infinite or NaN, else 0, so that results can be summed.
ARBALEST_HOST_DEVICE std::int32_t count_non_finite(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x7f800000U) == 0x7f800000U ? 1 : 0;
}

}  // namespace arbalest::engine::elementwise
