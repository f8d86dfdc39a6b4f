// Batch norm of images whose channels lie in blocks, as convolutions of oneDNN leave them: loops of ours, because they
// take fewer passes over memory, which is all that batch norm costs. Statistics take one pass, where oneDNN's take two;
// an addend and ReLU cost none of their own; and each pass starts with what the one before it has touched last, which
// is still in the cache.
//
// Elements are float or BFloat16, T below; parameters, statistics and sums are float32.
//
// Results do not depend on the number of threads: each image's share of a sum is formed by one thread, and the shares
// are added in one order.
#pragma once

#include <cstdint>
#include <optional>

#include <dnnl.hpp>

namespace arbalest::engine::cpu {

// [n, c, h, w] as runs of pixels [n, blocks, pixels, block], a block being some channels of a pixel, with zeros where
// there are no more.
struct BlockedImages {
  std::int64_t examples;
  std::int64_t channels;
  std::int64_t blocks;
  std::int64_t pixels;  // of a channel of an example
  std::int64_t block;   // 8 or 16

  std::int64_t runs() const { return examples * blocks; }
  std::int64_t padded_channels() const { return blocks * block; }
  std::int64_t numbers_of_channel() const { return examples * pixels; }
};
// None where images lie otherwise.
std::optional<BlockedImages> blocked_images(const dnnl::memory::desc& images);

// [padded channels] each, zero where there is no channel, so that padding stays zero:
//   output = (x - mean) * factor + shift
struct NormTerms {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* factor;   // scale * inverse
  float* shift;

  static constexpr std::int64_t kVectors = 4;
  // One behind the other in memory for kVectors * padded_channels() floats.
  static NormTerms in(float* memory, std::int64_t padded_channels) {
    return {memory, memory + padded_channels, memory + 2 * padded_channels, memory + 3 * padded_channels};
  }
};

// Floats that a call needs for the images' shares of its sums.
std::int64_t partial_floats(const BlockedImages& of);

// Fills in `terms` from the images, and `unbiased` [channels] with their variance, / (N - 1).
//   partials: [partial_floats]
template <typename T>
void measure_blocked(const BlockedImages& of, const T* input, const float* scale, const float* shift, float epsilon,
                     float* partials, const NormTerms& terms, float* unbiased, int threads);

// Fills in `terms` from given statistics [channels].
void use_statistics(const BlockedImages& of, const float* scale, const float* shift, const float* mean,
                    const float* variance, float epsilon, const NormTerms& terms);

// output = f((x - mean) * factor + shift + addend), f ReLU or nothing; `addend` null: none. All three may be one.
template <typename T>
void normalize_blocked(const BlockedImages& of, const T* input, const T* addend, const NormTerms& terms, bool relu,
                       T* output, int threads);

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

//   partials: [partial_floats]
template <typename T>
void blocked_gradients(const BlockedImages& of, const BlockedGradients<T>& task, const NormTerms& terms,
                       float* partials, int threads);

}  // namespace arbalest::engine::cpu
