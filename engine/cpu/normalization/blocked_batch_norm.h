// Batch norm of images with blocked channels, as oneDNN's convolutions write them, or with interleaved examples
// (engine/cpu/lanes/lanes.h). Batch norm is bound by memory bandwidth, and these loops make fewer passes over memory
// than oneDNN's. Statistics take one pass instead of two, and an addend and ReLU take no extra pass. Each pass starts
// with the data that the previous pass touched last, which is still in the cache.
//
// Elements are float or BFloat16, T below; parameters, statistics and sums are float32.
//
// Results do not depend on the number of threads: one thread computes each image's share of a sum, and the shares are
// added in one order.
#pragma once

#include <cstdint>
#include <optional>

#include <dnnl.hpp>

#include "engine/cpu/normalization/runs.h"

namespace arbalest::engine::cpu {

// Images [n, c, h, w] as runs of pixels [n / lanes, blocks, pixels, block]. A block holds some channels of one pixel,
// filled up with zeros, or one pixel of some examples.
struct BlockedImages {
  std::int64_t examples;
  std::int64_t channels;
  std::int64_t blocks;
  std::int64_t pixels;     // per channel and example
  std::int64_t block;      // 8 or 16
  std::int64_t lanes = 1;  // places of a block that belong to one channel: 1 or all

  std::int64_t runs() const { return examples / lanes * blocks; }
  std::int64_t places() const { return blocks * block; }
  std::int64_t padded_channels() const { return places() / lanes; }
  std::int64_t numbers_of_channel() const { return examples * pixels; }
};
// Returns none for images in another layout.
std::optional<BlockedImages> blocked_images(const dnnl::memory::desc& images);

// Number of floats that a call needs for the images' shares of its sums.
std::int64_t partial_floats(const BlockedImages& of);

// Computes `terms` from the images. Also writes their mean and variance, / (N - 1), to `mean` and `unbiased`
// [channels].
//   partials: [partial_floats]
template <typename T>
void measure_blocked(const BlockedImages& of, const T* input, const float* scale, const float* shift, float epsilon,
                     float* partials, const NormTerms& terms, float* mean, float* unbiased, int threads);

// Computes `terms` from given statistics [channels].
void use_statistics(const BlockedImages& of, const float* scale, const float* shift, const float* mean,
                    const float* variance, float epsilon, const NormTerms& terms);

// output = f((x - mean) * factor + shift + addend), where f is ReLU or nothing; `addend` may be null. All three tensors
// may be one buffer.
template <typename T>
void normalize_blocked(const BlockedImages& of, const T* input, const T* addend, const NormTerms& terms, bool relu,
                       T* output, int threads);

//   partials: [partial_floats]
template <typename T>
void blocked_gradients(const BlockedImages& of, const BlockedGradients<T>& task, const NormTerms& terms,
                       float* partials, int threads);

}  // namespace arbalest::engine::cpu
