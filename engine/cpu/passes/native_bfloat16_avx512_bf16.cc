// Compiled for AVX-512 with bfloat16: this code must not run on other processors.
#include "engine/cpu/passes/native_bfloat16.h"

#include <immintrin.h>

namespace arbalest::engine::cpu {

namespace {

constexpr std::int64_t kWidth = 16;

// Mask of the first `left` numbers of a vector.
__mmask16 first_of(std::int64_t left) {
  return static_cast<__mmask16>(left < kWidth ? (1U << static_cast<unsigned>(left)) - 1U : 0xFFFFU);
}

__m512 load(const BFloat16* address, __mmask16 mask) {
  constexpr unsigned kShift = 16;
  const __m512i words = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, address));
  return reinterpret_cast<__m512>(_mm512_maskz_slli_epi32(mask, words, kShift));
}

void store(__m512 numbers, BFloat16* address, __mmask16 mask) {
  _mm256_mask_storeu_epi16(address, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(numbers)));
}

}  // namespace

void round_natively(const float* from, BFloat16* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const __mmask16 mask = first_of(count - i);
    store(_mm512_maskz_loadu_ps(mask, from + i), to + i, mask);
  }
}

void add_natively(const BFloat16* a, const BFloat16* b, BFloat16* sum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const __mmask16 mask = first_of(count - i);
    store(load(a + i, mask) + load(b + i, mask), sum + i, mask);
  }
}

}  // namespace arbalest::engine::cpu
