// Half precision: IEEE 754's binary16, safetensors' F16.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace arbalest::jobs {

// The conversion is exact.
inline float from_half(std::uint16_t half) {
  constexpr std::uint32_t kExponentBits = 0x1FU;
  constexpr int kFractionBits = 10;
  constexpr int kMoreBits = 23 - kFractionBits;    // of float32's fraction
  constexpr std::uint32_t kBiasStep = 127U - 15U;  // of the exponents' biases
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> kFractionBits) & kExponentBits;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0U) {  // zero or subnormal
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0U ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == kExponentBits ? 0xFFU : exponent + kBiasStep;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << kMoreBits));
}

}  // namespace arbalest::jobs
