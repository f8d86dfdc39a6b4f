// The vectors that the kernels multiply, and arithmetic on them. This file is a part of
// engine/cpu/lanes/kernels_body.h.
#pragma once

#include <cstdint>

#include "engine/cpu/lanes/kernels.h"

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;

template <int width>
struct VectorOf {
  typedef float Type __attribute__((vector_size(width * sizeof(float)), may_alias));
  typedef std::int32_t Order __attribute__((vector_size(width * sizeof(float))));
};

// Bytes of gradients and input that are correlated several times in a row: up to 10 % faster than 20 KB (Zen 5,
// bfloat16).
constexpr Index kCorrelatedBytesOfAvx512 = 40 * 1024;

template <int width>
auto& vector_at(float* address) {
  return *reinterpret_cast<typename VectorOf<width>::Type*>(address);
}

// Types and arithmetic for the loops. Here a unit is one number.
template <int width>
struct Float32 {
  using Element = float;
  using Sums = typename VectorOf<width>::Type;
  using Units = Sums;
  static constexpr int kWidth = width;
  static constexpr Index kPixel = kLanes;  // units of a pixel if neighbors are examples
  // Bytes worked on at a time, so that they stay in the first-level cache: up to 17 % faster (Zen 3). 0: everything;
  // for AVX-512, smaller parts were not measured.
  static constexpr Index kCacheBytes = width == kLanes ? 0 : 20 * 1024;
  static constexpr Index kCorrelatedBytes = width == kLanes ? kCorrelatedBytesOfAvx512 : kCacheBytes;
  // Whether images larger than kCorrelatedBytes are split into rows.
  static constexpr bool kSplitsImages = width != kLanes;

  static Units load(const LaneUnit* address) { return *reinterpret_cast<const Units*>(address); }
  static Sums add_product(Sums sums, Units units, const LaneUnit* factor) {
    typedef float Number __attribute__((may_alias));
    return sums + units * *reinterpret_cast<const Number*>(factor);
  }
  static Sums add_product(Sums sums, Units a, Units b) { return sums + a * b; }
  static Sums add(Sums sums, Units units) { return sums + units; }
  static void store(Sums sums, float* address) { *reinterpret_cast<Sums*>(address) = sums; }
};

}  // namespace

}  // namespace arbalest::engine::cpu
