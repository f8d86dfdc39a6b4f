#include "engine/cpu/dense_gradient.h"

#include <algorithm>

#include "engine/cpu/parallel.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cpu {

std::optional<PairedWeights> paired_weights(const dnnl::memory::desc& weights) {
  const dnnl_memory_desc_t& data = weights.data;
  if (bfloat16_lane_kernels() == nullptr || data.ndims != 2 || data.data_type != dnnl_bf16 ||
      data.format_kind != dnnl_blocked) {
    return std::nullopt;
  }
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  const auto is_block = [&](int i, int axis) { return blocking.inner_idxs[i] == axis; };
  if (blocking.inner_nblks != 3 || !is_block(0, 1) || !is_block(1, 0) || !is_block(2, 1)) return std::nullopt;
  const PairedWeights of{data.dims[0], data.dims[1], blocking.inner_blks[1]};
  const std::int64_t blocks = of.padded_features() / PairedWeights::kFeatures;
  const std::int64_t block = of.block * PairedWeights::kFeatures;
  const bool is_paired = blocking.inner_blks[0] * 2 == PairedWeights::kFeatures && blocking.inner_blks[2] == 2 &&
                         of.block % PairedWeights::kUnits == 0;
  const bool is_dense = blocking.strides[1] == block && blocking.strides[0] == blocks * block;
  return is_paired && is_dense ? std::optional(of) : std::nullopt;
}

void pair_examples(int threads, std::int64_t examples, std::int64_t given, std::int64_t columns, const BFloat16* from,
                   LaneUnit* to) {
  typedef std::uint32_t Pair __attribute__((may_alias));
  for_each_part(threads, (examples + 1) / 2, [&](std::int64_t pair) {
    const BFloat16* first = from + 2 * pair * given;
    auto* target = reinterpret_cast<Pair*>(to + pair * columns);
    if (2 * pair + 1 < examples) {
      for (std::int64_t i = 0; i < given; ++i) {
        target[i] = first[i].bits | static_cast<std::uint32_t>(first[given + i].bits) << 16U;
      }
    } else {
      for (std::int64_t i = 0; i < given; ++i) target[i] = first[i].bits;
    }
    std::fill(target + given, target + columns, 0U);
  });
}

// The output's gradient, which every block of features reads, is smaller than the input as a rule, and stays in the
// first-level cache.
void dense_gradient(int threads, const PairedWeights& of, std::int64_t pairs, const LaneUnit* input,
                    const LaneUnit* output_gradient, float* weights_gradient) {
  constexpr std::int64_t kFeatures = PairedWeights::kFeatures;
  constexpr std::int64_t kUnits = PairedWeights::kUnits;
  const std::int64_t blocks = of.padded_features() / kFeatures;
  for_each_part(threads, blocks, [&](std::int64_t block) {
    for (std::int64_t unit = 0; unit < of.padded_units(); unit += kUnits) {
      float* target = weights_gradient + (unit / of.block * blocks + block) * of.block * kFeatures;
      dense_gradient_of_block({.pairs = pairs,
                               .input = input + block * kFeatures,
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
