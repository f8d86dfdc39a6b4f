#include "engine/cpu/normalization/runs.h"

#include "engine/cpu/normalization/runs_body.h"
#include "engine/cpu/onednn/instruction_sets.h"

namespace arbalest::engine::cpu {

namespace {

template <typename T>
constexpr NormRunsByBlock<T> runs_by_block() {
  return {{runs_of<1, T>(), runs_of<2, T>()}};
}

}  // namespace

constexpr NormRunsByBlock<float> kFloatNormRuns = runs_by_block<float>();
constexpr NormRunsByBlock<BFloat16> kBFloat16NormRuns = runs_by_block<BFloat16>();

template <>
const NormRuns<float>& norm_runs(Index block) {
  if (block == 2 * kWidth && vector_instructions().avx512) return kAvx512NormRuns;
  return kFloatNormRuns.of[block / kWidth - 1];
}

template <>
const NormRuns<BFloat16>& norm_runs(Index block) {
  if (block == 2 * kWidth && vector_instructions().avx512_bf16) return kAvx512Bf16NormRuns;
  return kBFloat16NormRuns.of[block / kWidth - 1];
}

}  // namespace arbalest::engine::cpu
