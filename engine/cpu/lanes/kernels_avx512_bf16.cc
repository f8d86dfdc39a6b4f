// Compiled for AVX-512 with bfloat16: this code must not run on other processors.
#include <immintrin.h>

#include "engine/cpu/lanes/kernels_body.h"

namespace arbalest::engine::cpu {

namespace {

// One instruction adds two products of bfloat16 to a sum; it treats numbers below 2^-126 as zero.
struct WholePixels {
  using Element = BFloat16;
  using Sums = __m512;
  using Units = __m512bh;
  static constexpr int kWidth = 16;
  static constexpr Index kCacheBytes = 0;  // 0: sums would be rounded when stored in between

  static Units load(const LaneUnit* address) { return reinterpret_cast<Units>(_mm512_loadu_si512(address)); }
  static Sums add_product(Sums sums, Units units, const LaneUnit* factor) {
    typedef int Word __attribute__((may_alias));
    const __m512i factors = _mm512_set1_epi32(*reinterpret_cast<const Word*>(factor));
    return _mm512_dpbf16_ps(sums, units, reinterpret_cast<Units>(factors));
  }
  static void store(Sums sums, BFloat16* address) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(address), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sums)));
  }
};

constexpr int kTwoOnes = 0x3F803F80;  // two ones in bfloat16

// Arithmetic on units of two examples: a pixel is half as long as a vector of 16 units.
struct PairedExamples {
  using Sums = __m256;
  using Units = __m256bh;
  static constexpr int kWidth = 8;
  static constexpr Index kPixel = kLanes / 2;
  static constexpr Index kCorrelatedBytes = kCorrelatedBytesOfAvx512;
  static constexpr bool kSplitsImages = false;

  static Units load(const LaneUnit* address) {
    return reinterpret_cast<Units>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(address)));
  }
  static Sums add_product(Sums sums, Units a, Units b) { return _mm256_dpbf16_ps(sums, a, b); }
  static Sums add(Sums sums, Units units) {
    return _mm256_dpbf16_ps(sums, units, reinterpret_cast<Units>(_mm256_set1_epi32(kTwoOnes)));
  }
};

struct PairedExamplesOfTwoPixels {
  using Sums = __m512;
  using Units = __m512bh;
  static constexpr int kWidth = 16;
  static constexpr Index kPixel = PairedExamples::kPixel;
  static constexpr Index kCorrelatedBytes = kCorrelatedBytesOfAvx512;
  static constexpr bool kSplitsImages = false;

  static Units load(const LaneUnit* address) { return WholePixels::load(address); }
  static Sums add_product(Sums sums, Units a, Units b) { return _mm512_dpbf16_ps(sums, a, b); }
  static Sums add(Sums sums, Units units) {
    return _mm512_dpbf16_ps(sums, units, reinterpret_cast<Units>(_mm512_set1_epi32(kTwoOnes)));
  }
};

// Correlates up to `most` filters at a time, so that fewer kernels are compiled.
template <typename Arithmetic, int most>
void correlate_in_parts(Index filters, const CorrelationTask& task) {
  const Index parts = (filters + most - 1) / most;
  for (Index part = 0; part < parts; ++part) {
    const Index begin = part * filters / parts;
    CorrelationTask some = task;
    some.gradient += begin * task.gradient_plane;
    some.weights_gradient += begin;
    if (task.bias_gradient != nullptr) some.bias_gradient += begin;
    correlate<Arithmetic, most>((part + 1) * filters / parts - begin, some);
  }
}

void correlate_pairs(Index filters, const CorrelationTask& task) {
  constexpr Index kAll = 8;  // filters of a narrow kernel, which most layers of residual networks have
  if (task.stride_x > 1 || task.width % 2 > 0) return correlate_in_parts<PairedExamples, 4>(filters, task);
  if (filters == kAll) return correlate_filters<PairedExamplesOfTwoPixels, kAll>(task);
  correlate_in_parts<PairedExamplesOfTwoPixels, 5>(filters, task);
}

}  // namespace

constexpr LaneKernels kAvx512Bf16LaneKernels = make_kernels<WholePixels, 13>(5, 8, correlate_pairs);  // 32 registers

}  // namespace arbalest::engine::cpu
