// Batch norm of images whose channels lie in blocks, as convolutions of oneDNN leave them, or whose examples do
// (engine/cpu/lanes.h): loops of ours, because they take fewer passes over memory, which is all that batch norm costs.
// Statistics take one pass, where oneDNN's take two; an addend and ReLU cost none of their own; and each pass starts
// with what the one before it has touched last, which is still in the cache.
//
// Elements are float or BFloat16, T below; parameters, statistics and sums are float32.
//
// Results do not depend on the number of threads: each image's share of a sum is formed by one thread, and the shares
// are added in one order.
#pragma once

#include <cstdint>
#include <optional>

#include <dnnl.hpp>

#include "engine/cpu/norm_runs.h"

namespace arbalest::engine::cpu {

// [n, c, h, w] as runs of pixels [n / lanes, blocks, pixels, block], a block being either some channels of a pixel,
// with zeros where there are no more, or a pixel of some examples.
struct BlockedImages {
  std::int64_t examples;
  std::int64_t channels;
  std::int64_t blocks;
  std::int64_t pixels;     // of a channel of an example
  std::int64_t block;      // 8 or 16
  std::int64_t lanes = 1;  // places of a block that are of one channel: 1 or all

  std::int64_t runs() const { return examples / lanes * blocks; }
  std::int64_t places() const { return blocks * block; }
  std::int64_t padded_channels() const { return places() / lanes; }
  std::int64_t numbers_of_channel() const { return examples * pixels; }
};
// None where images lie otherwise.
std::optional<BlockedImages> blocked_images(const dnnl::memory::desc& images);

// Floats that a call needs for the images' shares of its sums.
std::int64_t partial_floats(const BlockedImages& of);

// Fills in `terms` from the images, and `mean` and `unbiased` [channels] with theirs and their variance, / (N - 1).
//   partials: [partial_floats]
template <typename T>
void measure_blocked(const BlockedImages& of, const T* input, const float* scale, const float* shift, float epsilon,
                     float* partials, const NormTerms& terms, float* mean, float* unbiased, int threads);

// Fills in `terms` from given statistics [channels].
void use_statistics(const BlockedImages& of, const float* scale, const float* shift, const float* mean,
                    const float* variance, float epsilon, const NormTerms& terms);

// output = f((x - mean) * factor + shift + addend), f ReLU or nothing; `addend` null: none. All three may be one.
template <typename T>
void normalize_blocked(const BlockedImages& of, const T* input, const T* addend, const NormTerms& terms, bool relu,
                       T* output, int threads);

//   partials: [partial_floats]
template <typename T>
void blocked_gradients(const BlockedImages& of, const BlockedGradients<T>& task, const NormTerms& terms,
                       float* partials, int threads);

}  // namespace arbalest::engine::cpu
