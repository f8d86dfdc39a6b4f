// The gradient of a dense layer's weights in bfloat16, written in the order in which oneDNN multiplies the weights.
// oneDNN's own kernel writes another order, and reordering its result doubles the time.
#pragma once

#include <cstdint>
#include <optional>

#include <dnnl.hpp>

#include "engine/base/bfloat16.h"
#include "engine/cpu/dense_gradient/kernel.h"

namespace arbalest::engine::cpu {

// Weights in the layout of units_of_paired_blocks (engine/cpu/onednn/layout.h), padded with zeros.
struct PairedWeights {
  std::int64_t units;
  std::int64_t features;
  std::int64_t block;  // units per block, a multiple of kBlockUnits

  std::int64_t padded_units() const { return (units + block - 1) / block * block; }
  std::int64_t padded_features() const { return (features + kBlockFeatures - 1) / kBlockFeatures * kBlockFeatures; }
};
// Returns none if the weights have another layout or type, or the processor does not multiply bfloat16.
std::optional<PairedWeights> paired_weights(const dnnl::memory::desc& weights);

// Prepares an operand of dense_gradient: neighboring examples become units, [(examples + 1) / 2, columns], with zeros
// for the missing example and from column `given` on.
void pair_examples(int threads, std::int64_t examples, std::int64_t given, std::int64_t columns, const BFloat16* from,
                   LaneUnit* to);

// weights_gradient = sum over examples of output_gradient [units] times input [features]. Both come as pairs of
// examples [pairs, padded_...].
void dense_gradient(int threads, const PairedWeights& of, std::int64_t pairs, const LaneUnit* input,
                    const LaneUnit* output_gradient, float* weights_gradient);

// sums [columns] = sums of `gradient` [examples, columns] over all examples.
void sum_examples(std::int64_t examples, std::int64_t columns, const BFloat16* gradient, float* sums);

}  // namespace arbalest::engine::cpu
