// exp in float32 with the same bits on host and device, and simple enough for compilers to vectorize.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// Relative error below 2e-7 on [-87, 88]; 0 below, infinity above, NaN for NaN.
// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of degree 7.
ARBALEST_HOST_DEVICE float exponential(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits, so that n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U;
  const float result = p * std::bit_cast<float>(exponent);
  return x < -87.0F ? 0.0F : (x > 88.0F ? __builtin_huge_valf() : result);
}

}  // namespace arbalest::engine::elementwise
