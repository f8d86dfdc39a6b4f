// Counts labels by their rank among the logits of their example (engine/ops/accuracy.h).
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::engine::cpu {

// Of logits [labels.size(), classes], writes for each k of `top` (at most kMaxRankCounts numbers) how many labels are
// among the k largest logits.
void count_ranks(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes,
                 std::span<const std::int32_t> top, float* counts);

}  // namespace arbalest::engine::cpu
