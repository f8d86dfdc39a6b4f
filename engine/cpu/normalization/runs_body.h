// The bodies of engine/cpu/normalization/runs.h, compiled once for each instruction set. All of it belongs to the
// including file and shares no names with other files; otherwise the linker would keep only one version.
#pragma once

#include <cstdint>

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "engine/cpu/normalization/runs.h"

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;

#ifdef __AVX512F__
constexpr int kWidth = 16;  // floats
#else
constexpr int kWidth = 8;
#endif
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float)), may_alias));

inline Vector load(const float* address) { return *reinterpret_cast<const Vector*>(address); }
inline void store(const Vector& vector, float* address) { *reinterpret_cast<Vector*>(address) = vector; }

// elementwise::load and elementwise::store for a vector of bfloat16.
typedef std::uint16_t Halves __attribute__((vector_size(kWidth * sizeof(BFloat16)), may_alias));
typedef std::uint32_t Words __attribute__((vector_size(kWidth * sizeof(float))));

inline Vector load(const BFloat16* address) {
  return reinterpret_cast<Vector>(__builtin_convertvector(*reinterpret_cast<const Halves*>(address), Words) << 16U);
}

#ifdef __AVX512BF16__
// As below, except that numbers below 2^-126 become zero.
inline void store(const Vector& vector, BFloat16* address) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(address), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(vector)));
}
#else
inline void store(const Vector& vector, BFloat16* address) {
  const auto bits = reinterpret_cast<Words>(vector);
  const Words rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const Words kept = (bits & 0x7FFFFFFFU) > 0x7F800000U ? bits | 0x00400000U : rounded;
  *reinterpret_cast<Halves*>(address) = __builtin_convertvector(kept >> 16U, Halves);
}
#endif

// One number for each place of a block of `vectors` vectors.
template <int vectors>
struct Block {
  Vector of[vectors];

  Block() : of{} {}
  template <typename T>
  explicit Block(const T* address) {
    for (int v = 0; v < vectors; ++v) of[v] = load(address + v * kWidth);
  }
  void store(float* address) const {
    for (int v = 0; v < vectors; ++v) arbalest::engine::cpu::store(of[v], address + v * kWidth);
  }
};

template <int vectors>
void store_partials(const Block<vectors>& first, const Block<vectors>& second, float* partials) {
  first.store(partials);
  second.store(partials + vectors * kWidth);
}

// Mean of a run, and sum of its squared distances from the mean, for every place of the block.
template <int vectors, typename T>
void measure_run(const T* x, Index pixels, float* partials) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> origin(x);     // close to the mean, so that squares lose no digits
  Block<vectors> sum[2], squares[2];  // for every other pixel, so that an addition need not wait for the previous one
  const auto add = [&](Index pixel, int half) {
    for (int v = 0; v < vectors; ++v) {
      const Vector distance = load(x + pixel * kBlock + v * kWidth) - origin.of[v];
      sum[half].of[v] += distance;
      squares[half].of[v] += distance * distance;
    }
  };
  Index p = 0;
  for (; p + 1 < pixels; p += 2) {
    add(p, 0);
    add(p + 1, 1);
  }
  if (p < pixels) add(p, 0);
  const auto count = static_cast<float>(pixels);
  for (int v = 0; v < vectors; ++v) {
    const Vector total = sum[0].of[v] + sum[1].of[v];
    const Vector distance = total / count;
    squares[0].of[v] = squares[0].of[v] + squares[1].of[v] - total * distance;
    sum[0].of[v] = origin.of[v] + distance;
  }
  store_partials(sum[0], squares[0], partials);
}

template <int vectors, bool relu, bool adds, typename T>
void normalize_run(const T* x, const T* addend, const NormTerms& terms, Index place, Index pixels, T* y) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> mean(terms.mean + place), factor(terms.factor + place), shift(terms.shift + place);
  for (Index p = 0; p < pixels; ++p) {
    for (int v = 0; v < vectors; ++v) {
      const Index i = p * kBlock + v * kWidth;
      Vector value = (load(x + i) - mean.of[v]) * factor.of[v] + shift.of[v];
      if constexpr (adds) value += load(addend + i);
      if constexpr (relu) value = value < 0.0F ? Vector{} : value;  // NaN stays NaN
      store(value, y + i);
    }
  }
}

// dy before ReLU: dy where ReLU was active, else 0.
template <int vectors, BehindNorm behind, typename T>
Vector undo_relu(const BlockedGradients<T>& task, const Vector& distance, const Vector& factor, const Vector& shift,
                 Index i) {
  const Vector arriving = load(task.output_gradient + i);
  if constexpr (behind == BehindNorm::kNothing) return arriving;
  Vector value;
  if constexpr (behind == BehindNorm::kRelu) {
    value = distance * factor + shift;  // the same bits as in forward before rounding
  } else {
    value = load(task.output + i);
  }
  return value > 0.0F ? arriving : Vector{};
}

// Sums over a run, by place: of the gradient, and of the gradient times the distance from the mean.
template <int vectors, BehindNorm behind, typename T>
void sum_run(const BlockedGradients<T>& task, const NormTerms& terms, Index offset, Index place, Index pixels,
             float* partials) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> mean(terms.mean + place), factor(terms.factor + place), shift(terms.shift + place);
  Block<vectors> sum, product;
  for (Index p = 0; p < pixels; ++p) {
    for (int v = 0; v < vectors; ++v) {
      const Index i = offset + p * kBlock + v * kWidth;
      const Vector distance = load(task.input + i) - mean.of[v];
      const Vector gradient = undo_relu<vectors, behind>(task, distance, factor.of[v], shift.of[v], i);
      if constexpr (behind == BehindNorm::kAddendAndRelu) store(gradient, task.addend_gradient + i);
      sum.of[v] += gradient;
      product.of[v] += gradient * distance;
    }
  }
  store_partials(sum, product, partials);
}

// dx = factor (dy - mean of dy - (x - mean) slope). The addend's gradient has passed ReLU already.
template <int vectors, BehindNorm behind, typename T>
void differentiate_run(const BlockedGradients<T>& task, const NormTerms& terms, const float* means, const float* slopes,
                       Index offset, Index place, Index pixels) {
  constexpr Index kBlock = vectors * kWidth;
  const Block<vectors> mean(terms.mean + place), factor(terms.factor + place), shift(terms.shift + place);
  const Block<vectors> mean_gradient(means + place), slope(slopes + place);
  for (Index p = 0; p < pixels; ++p) {
    for (int v = 0; v < vectors; ++v) {
      const Index i = offset + p * kBlock + v * kWidth;
      const Vector distance = load(task.input + i) - mean.of[v];
      Vector gradient;
      if constexpr (behind == BehindNorm::kAddendAndRelu) {
        gradient = load(static_cast<const T*>(task.addend_gradient) + i);
      } else {
        gradient = undo_relu<vectors, behind>(task, distance, factor.of[v], shift.of[v], i);
      }
      store(factor.of[v] * (gradient - mean_gradient.of[v] - distance * slope.of[v]), task.input_gradient + i);
    }
  }
}

template <int vectors, typename T>
constexpr NormRuns<T> runs_of() {
  using enum BehindNorm;
  return {&measure_run<vectors, T>,
          {{&normalize_run<vectors, false, false, T>, &normalize_run<vectors, false, true, T>},
           {&normalize_run<vectors, true, false, T>, &normalize_run<vectors, true, true, T>}},
          {&sum_run<vectors, kNothing, T>, &sum_run<vectors, kRelu, T>, &sum_run<vectors, kAddendAndRelu, T>},
          {&differentiate_run<vectors, kNothing, T>, &differentiate_run<vectors, kRelu, T>,
           &differentiate_run<vectors, kAddendAndRelu, T>}};
}

}  // namespace

}  // namespace arbalest::engine::cpu
