// Exponentials of rows of logits, for softmax and cross entropy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/cpu/operators/rows.h"
#include "engine/elementwise/exponential.h"

namespace arbalest::engine::cpu {

struct RowSum {
  float largest;
  float sum;
};

// Writes exp(a - max a) to `exponentials` (may be null, or the logits) and returns {max a, sum of the exponentials}.
inline RowSum sum_exponentials(const float* logits, std::int64_t classes, float* exponentials) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) largest = std::max(largest, logits[c]);
  float lanes[kSumLanes] = {};
  for (std::int64_t c = 0; c < classes; c += kSumLanes) {
    const std::int64_t count = std::min(kSumLanes, classes - c);
    float values[kSumLanes] = {};
    for (std::int64_t i = 0; i < count; ++i) values[i] = elementwise::exponential(logits[c + i] - largest);
    for (std::int64_t i = 0; i < count; ++i) lanes[i] += values[i];
    if (exponentials != nullptr) std::copy_n(values, count, exponentials + c);
  }
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  return {largest, sum};
}

}  // namespace arbalest::engine::cpu
