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

// Rounds to nearest, ties to even; values beyond the largest number become infinity. NaN stays NaN.
inline std::uint16_t to_half(float value) {
  constexpr std::uint32_t kInfinity = 0x7F800000U;  // of float32
  constexpr std::uint32_t kOverflow = 0x477FF000U;  // 65520, halfway between the largest number and the next
  constexpr std::uint32_t kSmallest = 0x38800000U;  // 2^-14, the smallest normal number
  constexpr std::uint32_t kBiasStep = (127U - 15U) << 23U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > kInfinity) {
    half = 0x7E00U;
  } else if (magnitude >= kOverflow) {
    half = 0x7C00U;
  } else if (magnitude < kSmallest) {  // multiples of 2^-24
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24)));
  } else {
    half = (magnitude - kBiasStep + 0xFFFU + ((magnitude >> 13U) & 1U)) >> 13U;
  }
  return static_cast<std::uint16_t>(((bits >> 16U) & 0x8000U) | half);
}

}  // namespace arbalest::jobs
