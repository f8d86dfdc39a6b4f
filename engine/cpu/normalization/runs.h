// The loops of engine/cpu/normalization/blocked_batch_norm.h over one run of pixels [pixels, block], for one
// instruction set. A block has 8 or 16 places, each of its own channel or all of one channel. Elements are float or
// BFloat16. Vectors are loaded whole, so tensors begin at multiples of kAlignment.
#pragma once

#include <cstdint>

#include "engine/base/bfloat16.h"

namespace arbalest::engine::cpu {

// Terms by place, [places] each, for all blocks of an image. They are zero where there is no channel, so that padding
// stays zero:
//   output = (x - mean) * factor + shift
struct NormTerms {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* factor;   // scale * inverse
  float* shift;

  static constexpr std::int64_t kVectors = 4;
  // Places the vectors back to back in memory for kVectors * places floats.
  static NormTerms in(float* memory, std::int64_t places) {
    return {memory, memory + places, memory + 2 * places, memory + 3 * places};
  }
};

template <typename T>
struct BlockedGradients {
  const T* input;
  const T* output_gradient;
  bool relu = false;                 // whether the gradient passes ReLU first
  bool constant_statistics = false;  // the statistics do not depend on the input
  const T* output = nullptr;         // with an addend: shows where ReLU was active, which the input alone does not
  T* addend_gradient = nullptr;      // with an addend: output_gradient times ReLU's derivative; may be the same buffer
  T* input_gradient = nullptr;       // null: not wanted; may be the buffer of the last gradient that is read
  float* scale_gradient;             // [channels]
  float* shift_gradient;             // [channels]
};

enum class BehindNorm { kNothing, kRelu, kAddendAndRelu };

// `place`: first place of the run. `offset`: offset of the run's first element in the tensors of `task`. Functions with
// `partials` write two numbers there for each place of the block, [2, block].
template <typename T>
struct NormRuns {
  // Mean of the run, and sum of its squared distances from the mean.
  void (*measure)(const T* x, std::int64_t pixels, float* partials);
  // Indexed by [ReLU][with addend].
  void (*normalize[2][2])(const T* x, const T* addend, const NormTerms& terms, std::int64_t place, std::int64_t pixels,
                          T* y);
  // Indexed by BehindNorm. Sums of the gradient, and of the gradient times the distance from the mean.
  void (*sum[3])(const BlockedGradients<T>& task, const NormTerms& terms, std::int64_t offset, std::int64_t place,
                 std::int64_t pixels, float* partials);
  // Indexed by BehindNorm. dx = factor (dy - mean of dy - (x - mean) slope), with `means` of dy and `slopes` by place.
  void (*differentiate[3])(const BlockedGradients<T>& task, const NormTerms& terms, const float* means,
                           const float* slopes, std::int64_t offset, std::int64_t place, std::int64_t pixels);
};

// For blocks of 8 and of 16.
template <typename T>
struct NormRunsByBlock {
  NormRuns<T> of[2];
};

extern const NormRunsByBlock<float> kFloatNormRuns;
extern const NormRunsByBlock<BFloat16> kBFloat16NormRuns;
// For blocks of 16.
extern const NormRuns<float> kAvx512NormRuns;         // only on a processor with AVX-512
extern const NormRuns<BFloat16> kAvx512Bf16NormRuns;  // only on a processor with avx512_bf16

// The fastest runs for this processor.
template <typename T>
const NormRuns<T>& norm_runs(std::int64_t block);
template <>
const NormRuns<float>& norm_runs(std::int64_t block);
template <>
const NormRuns<BFloat16>& norm_runs(std::int64_t block);

}  // namespace arbalest::engine::cpu
