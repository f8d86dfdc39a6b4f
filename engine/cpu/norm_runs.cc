#include "engine/cpu/norm_runs.h"

#include "engine/cpu/norm_runs_body.h"

namespace arbalest::engine::cpu {

namespace {

constexpr NormRunsByBlock<float> kFloatNormRuns = runs_by_block<float>();

}  // namespace

constexpr NormRunsByBlock<BFloat16> kBFloat16NormRuns = runs_by_block<BFloat16>();

template <>
const NormRuns<float>& norm_runs(Index block) {
  return kFloatNormRuns.of[block / kWidth - 1];
}

template <>
const NormRuns<BFloat16>& norm_runs(Index block) {
  const bool is_native = __builtin_cpu_supports("avx512bf16");
  return (is_native ? kAvx512Bf16NormRuns : kBFloat16NormRuns).of[block / kWidth - 1];
}

}  // namespace arbalest::engine::cpu
