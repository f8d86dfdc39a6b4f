// Compiled for AVX-512 with bfloat16: nothing here may run on another processor.
#include <immintrin.h>

#include "engine/cpu/round_natively.h"

namespace arbalest::engine::cpu {

void round_natively(const float* from, BFloat16* to, std::int64_t count) {
  constexpr int kWidth = 16;
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const auto left = static_cast<unsigned>(count - i < kWidth ? count - i : kWidth);
    const auto mask = static_cast<__mmask16>((1U << left) - 1U);
    const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i)));
    _mm256_mask_storeu_epi16(to + i, mask, rounded);
  }
}

}  // namespace arbalest::engine::cpu
