// Is a number infinite or NaN? By its exponent bits, which every compiler keeps, whatever it assumes about floats.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// 1 or 0, to be summed.
ARBALEST_HOST_DEVICE std::int32_t count_non_finite(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return (bits & 0x7f800000U) == 0x7f800000U ? 1 : 0;
}

}  // namespace arbalest::engine::elementwise
