#include "engine/cpu/operators/outputs/ranks.h"

#include <array>
#include <cstddef>

#include "engine/elementwise/rank.h"
#include "engine/ops/accuracy.h"

namespace arbalest::engine::cpu {

namespace {

// Number of logits larger than the label's; -1 if the label's logit is NaN, or the label is no class.
std::int64_t rank_of(const float* logits, std::int64_t classes, std::int32_t label) {
  if (label < 0 || label >= classes || logits[label] != logits[label]) return -1;
  std::int64_t rank = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    rank += elementwise::ranks_before(logits[c], c, logits[label], label) ? 1 : 0;
  }
  return rank;
}

}  // namespace

void count_ranks(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes,
                 std::span<const std::int32_t> top, float* counts) {
  std::array<std::int64_t, kMaxRankCounts> exact{};
  for (const std::int32_t label : labels) {
    const std::int64_t rank = rank_of(logits, classes, label);
    logits += classes;
    if (rank < 0) continue;
    for (std::size_t k = 0; k < top.size(); ++k) exact[k] += rank < top[k] ? 1 : 0;
  }
  for (std::size_t k = 0; k < top.size(); ++k) counts[k] = static_cast<float>(exact[k]);
}

}  // namespace arbalest::engine::cpu
