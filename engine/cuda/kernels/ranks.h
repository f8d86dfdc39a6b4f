// Ranks of labels among the logits of their example, and how many of them are among the k largest
// (engine/ops/accuracy.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/rank.h"
#include "engine/ops/accuracy.h"

namespace arbalest::engine::cuda {

// The numbers k, as an argument of kernels.
struct Tops {
  std::int32_t count = 0;
  std::int32_t top[kMaxRankCounts] = {};
};

inline Tops tops_of(const std::vector<std::int32_t>& top) {
  ARBALEST_CHECK(top.size() <= kMaxRankCounts);
  Tops tops{static_cast<std::int32_t>(top.size()), {}};
  std::ranges::copy(top, tops.top);
  return tops;
}

// The rank of a label that is no class, or whose logit is NaN: never among the largest.
inline constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();

// Number of the lane's logits that rank before the label's, 0 if the label is no class. `T`: type of the logits of one
// row.
template <typename T>
__device__ std::int32_t rank_of_lane(const T* logits, std::int64_t classes, std::int32_t label, int lane) {
  if (label < 0 || label >= classes) return 0;
  const float of_label = elementwise::load(logits[label]);
  std::int32_t rank = 0;
  for (std::int64_t c = lane; c < classes; c += kRowLanes) {
    rank += elementwise::ranks_before(elementwise::load(logits[c]), c, of_label, label) ? 1 : 0;
  }
  return rank;
}

// The label's rank, from what rank_of_lane() returned for each lane of the row.
template <typename T>
__device__ std::int32_t rank_of_row(const T* logits, std::int64_t classes, std::int32_t label,
                                    const std::int32_t* lanes) {
  if (label < 0 || label >= classes) return kNoRank;
  const float of_label = elementwise::load(logits[label]);
  return of_label == of_label ? sum_of_lanes(lanes) : kNoRank;
}

// counts[k] = number of ranks below tops.top[k], which is below 2^31. One block computes them, and all of its threads
// must call the function.
__device__ inline void count_ranks(const std::int32_t* ranks, std::int64_t examples, const Tops& tops, float* counts) {
#pragma unroll  // without it, the numbers would lie in local memory
  for (std::int32_t k = 0; k < kMaxRankCounts; ++k) {
    if (k >= tops.count) break;
    std::int32_t count = 0;
    for (std::int64_t n = threadIdx.x; n < examples; n += kThreads) count += ranks[n] < tops.top[k] ? 1 : 0;
    count = block_sum(count);
    if (threadIdx.x == 0) counts[k] = static_cast<float>(count);
  }
}

}  // namespace arbalest::engine::cuda
