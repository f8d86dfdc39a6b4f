// The gradient of a dense layer's weights in bfloat16, written in the order in which oneDNN multiplies the weights. Its
// own kernel leaves another order, and bringing that into this one takes as long again.
#pragma once

#include <cstdint>
#include <optional>

#include <dnnl.hpp>

#include "engine/bfloat16.h"
#include "engine/cpu/lane_kernels.h"

namespace arbalest::engine::cpu {

// Weights [units, features] in blocks of `block` units and kFeatures features: each has pairs of features, of them the
// units, of them the two features. Zeros where there are no more.
struct PairedWeights {
  static constexpr std::int64_t kFeatures = 16;
  static constexpr std::int64_t kUnits = 16;  // `block` is a multiple of this

  std::int64_t units;
  std::int64_t features;
  std::int64_t block;

  std::int64_t padded_units() const { return (units + block - 1) / block * block; }
  std::int64_t padded_features() const { return (features + kFeatures - 1) / kFeatures * kFeatures; }
};
// None where they lie otherwise, are of another type, or the processor does not multiply bfloat16.
std::optional<PairedWeights> paired_weights(const dnnl::memory::desc& weights);

// What dense_gradient reads: neighboring examples in units, [(examples + 1) / 2, columns] with zeros where there is no
// example and from column `given` on.
void pair_examples(int threads, std::int64_t examples, std::int64_t given, std::int64_t columns, const BFloat16* from,
                   LaneUnit* to);

// weights_gradient = sum over examples of output_gradient [units] times input [features]; both come as pairs of
// examples [pairs, padded_...].
void dense_gradient(int threads, const PairedWeights& of, std::int64_t pairs, const LaneUnit* input,
                    const LaneUnit* output_gradient, float* weights_gradient);

// sums [columns] over all examples of `gradient` [examples, columns].
void sum_examples(std::int64_t examples, std::int64_t columns, const BFloat16* gradient, float* sums);

// One of its blocks' kUnits by kFeatures, from the first of each on. Only on a processor that has avx512_bf16.
struct DenseGradientTask {
  std::int64_t pairs;
  const LaneUnit* input;
  std::int64_t input_row;  // from pair to pair
  const LaneUnit* output_gradient;
  std::int64_t output_gradient_row;
  float* target;
  std::int64_t target_row;  // from two features to the next two
};
void dense_gradient_of_block(const DenseGradientTask& task);

}  // namespace arbalest::engine::cpu
