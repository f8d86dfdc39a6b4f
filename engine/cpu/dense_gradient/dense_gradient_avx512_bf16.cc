// Compiled for AVX-512 with bfloat16: this code must not run on other processors.
#include <immintrin.h>

#include "engine/cpu/dense_gradient/kernel.h"

namespace arbalest::engine::cpu {

// A vector of sums holds 8 units for two features. The sums stay in registers for all examples: 16 sums, 2 vectors of
// units and one of features.
void dense_gradient_of_block(const DenseGradientTask& task) {
  constexpr int kVectors = 2;
  constexpr int kUnitsOfVector = kBlockUnits / kVectors;
  constexpr int kPairs = kBlockFeatures / 2;
  constexpr __mmask8 kAllQuads = 0xFF;
  constexpr __mmask16 kAll = 0xFFFF;  // GCC 12 warns of intrinsics without a mask
  const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  __m512 sums[kPairs][kVectors];
  for (int p = 0; p < kPairs; ++p) {
    for (int v = 0; v < kVectors; ++v) sums[p][v] = _mm512_setzero_ps();
  }
  for (std::int64_t pair = 0; pair < task.pairs; ++pair) {
    const LaneUnit* input = task.input + pair * task.input_row;
    const LaneUnit* arriving = task.output_gradient + pair * task.output_gradient_row;
    __m512bh units[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const auto* address = reinterpret_cast<const __m256i*>(arriving + v * kUnitsOfVector);
      const __m512i read = _mm512_maskz_broadcast_i64x4(kAllQuads, _mm256_loadu_si256(address));
      units[v] = reinterpret_cast<__m512bh>(_mm512_maskz_permutexvar_epi32(kAll, twice, read));
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPairs; ++p) {
      typedef long long Two __attribute__((may_alias, aligned(4)));
      const auto features = reinterpret_cast<__m512bh>(_mm512_set1_epi64(*reinterpret_cast<const Two*>(input + 2 * p)));
      for (int v = 0; v < kVectors; ++v) sums[p][v] = _mm512_dpbf16_ps(sums[p][v], units[v], features);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(task.target + p * task.target_row + v * 2 * kUnitsOfVector, sums[p][v]);
    }
  }
}

}  // namespace arbalest::engine::cpu
