#include "engine/cpu/dense_gradient/dense_gradient.h"

#include <algorithm>

#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cpu {

std::optional<PairedWeights> paired_weights(const dnnl::memory::desc& weights) {
  if (bfloat16_lane_kernels() == nullptr || weights.data_type() != dnnl::memory::data_type::bf16) return std::nullopt;
  const auto block = units_of_paired_blocks(weights);
  if (!block.has_value() || *block % kBlockUnits != 0) return std::nullopt;
  return PairedWeights{weights.dims()[0], weights.dims()[1], *block};
}

void pair_examples(int threads, std::int64_t examples, std::int64_t given, std::int64_t columns, const BFloat16* from,
                   LaneUnit* to) {
  for_each_part(threads, (examples + 1) / 2, [&](std::int64_t pair) {
    const BFloat16* first = from + 2 * pair * given;
    LaneUnit* target = to + pair * columns;
    pack(given, first, 2 * pair + 1 < examples ? first + given : nullptr, target);
    std::fill(target + given, target + columns, LaneUnit{});
  });
}

// The output's gradient is read for every block of features, because it is usually smaller than the input.
void dense_gradient(int threads, const PairedWeights& of, std::int64_t pairs, const LaneUnit* input,
                    const LaneUnit* output_gradient, float* weights_gradient) {
  const std::int64_t blocks = of.padded_features() / kBlockFeatures;
  for_each_part(threads, blocks, [&](std::int64_t block) {
    for (std::int64_t unit = 0; unit < of.padded_units(); unit += kBlockUnits) {
      float* target = weights_gradient + (unit / of.block * blocks + block) * of.block * kBlockFeatures;
      dense_gradient_of_block({.pairs = pairs,
                               .input = input + block * kBlockFeatures,
                               .input_row = of.padded_features(),
                               .output_gradient = output_gradient + unit,
                               .output_gradient_row = of.padded_units(),
                               .target = target + unit % of.block * 2,
                               .target_row = of.block * 2});
    }
  });
}

void sum_examples(std::int64_t examples, std::int64_t columns, const BFloat16* gradient, float* sums) {
  std::fill_n(sums, columns, 0.0F);
  for (std::int64_t n = 0; n < examples; ++n) {
    const BFloat16* row = gradient + n * columns;
#pragma omp simd
    for (std::int64_t i = 0; i < columns; ++i) sums[i] += elementwise::load(row[i]);
  }
}

}  // namespace arbalest::engine::cpu
