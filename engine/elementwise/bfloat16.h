// Converts between numbers in memory and float32, in which all arithmetic is done. Integer operations give host and
// device the same rounding.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/base/bfloat16.h"
#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// Rounds to nearest, ties to even; values beyond the largest bfloat16 become infinity. NaN stays NaN.
ARBALEST_HOST_DEVICE BFloat16 to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t quiet = bits | 0x00400000U;  // a NaN whose upper half alone would be an infinity
  return {static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16U)};
}

// The conversion is exact.
ARBALEST_HOST_DEVICE float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

// For code that is written for both element types.
ARBALEST_HOST_DEVICE float load(float element) { return element; }
ARBALEST_HOST_DEVICE float load(BFloat16 element) { return to_float(element); }
ARBALEST_HOST_DEVICE void store(float value, float& element) { element = value; }
ARBALEST_HOST_DEVICE void store(float value, BFloat16& element) { element = to_bfloat16(value); }

}  // namespace arbalest::engine::elementwise
