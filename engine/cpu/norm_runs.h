// The loops of engine/cpu/blocked_norm.h over one run of pixels [pixels, block], for one instruction set. A block has 8
// or 16 places, of a channel each or all of one; elements are float or BFloat16. Vectors are loaded whole, so tensors
// begin at multiples of kAlignment.
#pragma once

#include <cstdint>

#include "engine/bfloat16.h"

namespace arbalest::engine::cpu {

// [places] each, those of all blocks of an image; zero where there is no channel, so that padding stays zero:
//   output = (x - mean) * factor + shift
struct NormTerms {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* factor;   // scale * inverse
  float* shift;

  static constexpr std::int64_t kVectors = 4;
  // One behind the other in memory for kVectors * places floats.
  static NormTerms in(float* memory, std::int64_t places) {
    return {memory, memory + places, memory + 2 * places, memory + 3 * places};
  }
};

template <typename T>
struct BlockedGradients {
  const T* input;
  const T* output_gradient;
  bool relu = false;             // undo it first
  const T* output = nullptr;     // with an addend: says what ReLU let pass, which the input alone does not
  T* addend_gradient = nullptr;  // with an addend: output_gradient behind ReLU, perhaps in its place
  T* input_gradient = nullptr;   // null: not wanted. In the place of the last one read, or of none
  float* scale_gradient;         // [channels]
  float* shift_gradient;         // [channels]
};

enum class BehindNorm { kNothing, kRelu, kAddendAndRelu };

// `place`: the run's first one. `offset`: of the run's first element in the tensors of `task`. Those with `partials`
// write two numbers for each place of the block there, [2, block].
template <typename T>
struct NormRuns {
  // Mean of the run, and its sum of squared distances from that.
  void (*measure)(const T* x, std::int64_t pixels, float* partials);
  // By [ReLU][with addend].
  void (*normalize[2][2])(const T* x, const T* addend, const NormTerms& terms, std::int64_t place, std::int64_t pixels,
                          T* y);
  // By BehindNorm. Sums of the gradient, and of the gradient times the distance from the mean.
  void (*sum[3])(const BlockedGradients<T>& task, const NormTerms& terms, std::int64_t offset, std::int64_t place,
                 std::int64_t pixels, float* partials);
  // By BehindNorm. dx = factor (dy - mean of dy - (x - mean) slope), with `means` of dy and `slopes` by place.
  void (*differentiate[3])(const BlockedGradients<T>& task, const NormTerms& terms, const float* means,
                           const float* slopes, std::int64_t offset, std::int64_t place, std::int64_t pixels);
};

// For a block of 8 and one of 16.
template <typename T>
struct NormRunsByBlock {
  NormRuns<T> of[2];
};

extern const NormRunsByBlock<float> kFloatNormRuns;
extern const NormRunsByBlock<BFloat16> kBFloat16NormRuns;
// For a block of 16.
extern const NormRuns<float> kAvx512NormRuns;         // only on a processor that has AVX-512
extern const NormRuns<BFloat16> kAvx512Bf16NormRuns;  // only on a processor that has avx512_bf16

// The fastest for the processor that runs this.
template <typename T>
const NormRuns<T>& norm_runs(std::int64_t block);
template <>
const NormRuns<float>& norm_runs(std::int64_t block);
template <>
const NormRuns<BFloat16>& norm_runs(std::int64_t block);

}  // namespace arbalest::engine::cpu
