// The instructions of avx512_bf16 and AVX-512 that our bfloat16 kernels use, in plain C++. A source file includes this
// header and then a kernel's source: the kernel gets another name and runs on every processor
// (tests/engine/emulated_kernels.h).
#pragma once

#include <immintrin.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace arbalest::tests::emulated {

template <typename Number, std::size_t bytes>
using Numbers = std::array<Number, bytes / sizeof(Number)>;

// The lowest numbers of a vector in memory, and a vector of such numbers.
template <typename Number, std::size_t bytes>
Numbers<Number, bytes> read(const void* vector) {
  Numbers<Number, bytes> numbers;
  std::memcpy(numbers.data(), vector, bytes);
  return numbers;
}
template <typename Array>
__m512i integers(const Array& numbers) {
  static_assert(sizeof(Array) == sizeof(__m512i));
  __m512i vector;
  std::memcpy(&vector, numbers.data(), sizeof(vector));
  return vector;
}

// The instructions treat numbers below 2^-126 as zero.
inline float flushed(float number) {
  return std::fpclassify(number) == FP_SUBNORMAL ? std::copysign(0.0F, number) : number;
}
inline float widened(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16U;
  float number = 0.0F;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}
// To the nearest bfloat16, with ties to even.
inline std::uint16_t rounded(float number) {
  const float kept = flushed(number);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &kept, sizeof(bits));
  const std::uint32_t upper = bits >> 16U;
  if (std::isnan(kept)) return static_cast<std::uint16_t>(upper | 0x40U);
  const std::uint32_t lower = bits & 0xFFFFU;
  const bool up = lower > 0x8000U || (lower == 0x8000U && upper % 2 == 1);
  return static_cast<std::uint16_t>(upper + (up ? 1U : 0U));
}

// Adds the products of pairs of bfloat16 to sums, first those with odd numbers.
inline void add_products(std::size_t count, const void* a, const void* b, void* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t first[2];
    std::uint16_t second[2];
    float sum = 0.0F;
    std::memcpy(first, static_cast<const char*>(a) + i * sizeof(first), sizeof(first));
    std::memcpy(second, static_cast<const char*>(b) + i * sizeof(second), sizeof(second));
    std::memcpy(&sum, static_cast<const char*>(sums) + i * sizeof(sum), sizeof(sum));
    for (const int half : {1, 0}) {
      sum = flushed(flushed(sum) + flushed(widened(first[half])) * flushed(widened(second[half])));
    }
    std::memcpy(static_cast<char*>(sums) + i * sizeof(sum), &sum, sizeof(sum));
  }
}
inline __m512 dot(__m512 sums, __m512bh a, __m512bh b) {
  add_products(16, &a, &b, &sums);
  return sums;
}
inline __m256 dot(__m256 sums, __m256bh a, __m256bh b) {
  add_products(8, &a, &b, &sums);
  return sums;
}

inline __m256bh round(__m512 numbers) {
  __m256bh result;
  Numbers<std::uint16_t, sizeof(result)> halves;
  const auto floats = read<float, sizeof(numbers)>(&numbers);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = rounded(floats[i]);
  std::memcpy(&result, halves.data(), sizeof(result));
  return result;
}
inline __m512bh round_two(__m512 upper, __m512 lower) {
  const __m256bh halves[] = {round(lower), round(upper)};
  __m512bh result;
  std::memcpy(&result, halves, sizeof(result));
  return result;
}

inline __m512 float_of(float number) {
  __m512 vector;
  const auto numbers = [&] {
    Numbers<float, sizeof(vector)> all;
    all.fill(number);
    return all;
  }();
  std::memcpy(&vector, numbers.data(), sizeof(vector));
  return vector;
}
template <typename Number>
__m512i filled(Number number) {
  Numbers<Number, sizeof(__m512i)> numbers;
  numbers.fill(number);
  return integers(numbers);
}

inline __m512i load(const void* address) { return integers(read<char, sizeof(__m512i)>(address)); }
template <typename Vector>
void store(void* address, const Vector& vector) {
  std::memcpy(address, &vector, sizeof(vector));
}
inline bool has(unsigned mask, std::size_t i) { return (mask >> i & 1U) != 0; }
inline __m512 load_floats(unsigned mask, const float* address) {
  __m512 vector = float_of(0.0F);
  for (std::size_t i = 0; i < 16; ++i) {
    if (has(mask, i)) std::memcpy(reinterpret_cast<char*>(&vector) + i * sizeof(float), address + i, sizeof(float));
  }
  return vector;
}
inline __m256i load_halves(unsigned mask, const void* address) {
  __m256i vector = _mm256_setzero_si256();
  for (std::size_t i = 0; i < 16; ++i) {
    if (has(mask, i))
      std::memcpy(reinterpret_cast<char*>(&vector) + 2 * i, static_cast<const char*>(address) + 2 * i, 2);
  }
  return vector;
}
inline void store_halves(void* address, unsigned mask, __m256i vector) {
  for (std::size_t i = 0; i < 16; ++i) {
    if (has(mask, i)) std::memcpy(static_cast<char*>(address) + 2 * i, reinterpret_cast<char*>(&vector) + 2 * i, 2);
  }
}

inline __m512i widen(unsigned mask, __m256i halves) {
  Numbers<std::uint32_t, sizeof(__m512i)> words{};
  const auto given = read<std::uint16_t, sizeof(halves)>(&halves);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = has(mask, i) ? given[i] : 0;
  return integers(words);
}
inline __m512i shift(unsigned mask, __m512i vector, unsigned bits) {
  auto words = read<std::uint32_t, sizeof(vector)>(&vector);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = has(mask, i) ? words[i] << bits : 0;
  return integers(words);
}
inline __m512i both_halves(unsigned mask, __m256i vector) {
  const auto quads = read<std::uint64_t, sizeof(vector)>(&vector);
  Numbers<std::uint64_t, sizeof(__m512i)> result{};
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = has(mask, i) ? quads[i % quads.size()] : 0;
  return integers(result);
}
template <typename Number>
__m512i permuted(unsigned mask, __m512i order, __m512i vector) {
  const auto places = read<Number, sizeof(order)>(&order);
  const auto numbers = read<Number, sizeof(vector)>(&vector);
  Numbers<Number, sizeof(vector)> result{};
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = has(mask, i) ? numbers[places[i] % numbers.size()] : 0;
  return integers(result);
}

}  // namespace arbalest::tests::emulated

// Without optimization some of these are macros already.
#undef _mm512_maskz_slli_epi32

#define _mm256_dpbf16_ps ::arbalest::tests::emulated::dot
#define _mm256_mask_storeu_epi16 ::arbalest::tests::emulated::store_halves
#define _mm256_maskz_loadu_epi16 ::arbalest::tests::emulated::load_halves
#define _mm512_cvtne2ps_pbh ::arbalest::tests::emulated::round_two
#define _mm512_cvtneps_pbh ::arbalest::tests::emulated::round
#define _mm512_dpbf16_ps ::arbalest::tests::emulated::dot
#define _mm512_load_si512 ::arbalest::tests::emulated::load
#define _mm512_loadu_si512 ::arbalest::tests::emulated::load
#define _mm512_maskz_broadcast_i64x4 ::arbalest::tests::emulated::both_halves
#define _mm512_maskz_cvtepu16_epi32 ::arbalest::tests::emulated::widen
#define _mm512_maskz_loadu_ps ::arbalest::tests::emulated::load_floats
#define _mm512_maskz_permutexvar_epi32 ::arbalest::tests::emulated::permuted<std::uint32_t>
#define _mm512_maskz_slli_epi32 ::arbalest::tests::emulated::shift
#define _mm512_permutexvar_epi16(order, vector) \
  ::arbalest::tests::emulated::permuted<std::uint16_t>(0xFFFFFFFFU, order, vector)
#define _mm512_set1_epi32 ::arbalest::tests::emulated::filled<std::int32_t>
#define _mm512_set1_epi64 ::arbalest::tests::emulated::filled<std::int64_t>
#define _mm512_set1_ps ::arbalest::tests::emulated::float_of
#define _mm512_set_epi32(f, e, d, c, b, a, n9, n8, n7, n6, n5, n4, n3, n2, n1, n0) \
  ::arbalest::tests::emulated::integers(                                           \
      std::array<std::int32_t, 16>{n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, a, b, c, d, e, f})
#define _mm512_setzero_ps() ::arbalest::tests::emulated::float_of(0.0F)
#define _mm512_storeu_ps ::arbalest::tests::emulated::store
#define _mm512_storeu_si512 ::arbalest::tests::emulated::store

// Statements without instructions, whose operands are registers of AVX-512.
#define __asm__(...) static_cast<void>(0)

// Names of the emulated kernels.
#define bfloat16_lane_kernels emulated_lane_kernels
#define kAvx512Bf16LaneKernels kEmulatedLaneKernels
#define kAvx512Bf16NormRuns kEmulatedNormRuns
#define dense_gradient_of_block emulated_dense_gradient_of_block
#define round_natively emulated_round
#define add_natively emulated_add
#define has_winograd emulated_has_winograd
#define WinogradConvolution EmulatedWinogradConvolution
#define WinogradWeightsGradient EmulatedWinogradWeightsGradient
#define transform_channels emulated_transform_channels
#define transform_weights emulated_transform_weights
#define convolve_rows emulated_convolve_rows
#define transform_input emulated_transform_input
#define transform_gradient emulated_transform_gradient
