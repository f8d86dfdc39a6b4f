// Half precision: IEEE 754's binary16, safetensors' F16. Every processor of the baseline (x86-64-v3) converts it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace arbalest::jobs {

// The conversion is exact.
inline float from_half(std::uint16_t half) { return _cvtsh_ss(half); }

// Rounds to nearest, ties to even; values beyond the largest number become infinity. NaN stays NaN.
inline std::uint16_t to_half(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT); }

}  // namespace arbalest::jobs
