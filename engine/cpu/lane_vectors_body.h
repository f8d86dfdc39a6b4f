// What the kernels multiply: vectors, and arithmetic on them. A part of engine/cpu/lane_kernels_body.h.
#pragma once

#include <cstdint>

#include "engine/cpu/lane_kernels.h"

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;

template <int width>
struct VectorOf {
  typedef float Type __attribute__((vector_size(width * sizeof(float)), may_alias));
  typedef std::int32_t Order __attribute__((vector_size(width * sizeof(float))));
};

// Gradients and input that are correlated with each other several times in a row: up to 10 % faster than with 20 KB
// (Zen 5, bfloat16).
constexpr Index kCorrelatedBytesOfAvx512 = 40 * 1024;

template <int width>
auto& vector_at(float* address) {
  return *reinterpret_cast<typename VectorOf<width>::Type*>(address);
}

// What the loops need to know of numbers and vectors of them. Here a unit is a number.
template <int width>
struct Float32 {
  using Element = float;
  using Sums = typename VectorOf<width>::Type;
  using Units = Sums;
  static constexpr int kWidth = width;
  static constexpr Index kPixel = kLanes;  // units of a pixel where neighbors are examples
  // So much is worked on at a time that stays in the first-level cache: up to 17 % faster (Zen 3). 0: everything; with
  // AVX-512, where less was not measured.
  static constexpr Index kCacheBytes = width == kLanes ? 0 : 20 * 1024;
  static constexpr Index kCorrelatedBytes = width == kLanes ? kCorrelatedBytesOfAvx512 : kCacheBytes;
  static constexpr bool kSplitsImages = width != kLanes;  // into rows, where images take more than kCorrelatedBytes

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
