// One element of model averaging (formulas: engine/passes/averaging.h, engine/passes/moving_average.h).
#pragma once

#include <cstdint>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

struct CentralTerms {
  float step;      // eta / k
  float momentum;  // mu
};

// Terms for elements that are running statistics.
ARBALEST_HOST_DEVICE CentralTerms statistics_terms(float mean_factor) { return {mean_factor, 0.0F}; }

// z + step S + mu (z - z-)
ARBALEST_HOST_DEVICE float next_central(float central, float previous, float sum, const CentralTerms& terms) {
  return central + terms.step * sum + terms.momentum * (central - previous);
}

// mu v + step S, the velocity of Nesterov's rule.
ARBALEST_HOST_DEVICE float next_velocity(float velocity, float sum, const CentralTerms& terms) {
  return terms.momentum * velocity + terms.step * sum;
}

// z + step S + mu v, with the next velocity.
ARBALEST_HOST_DEVICE float nesterov_central(float central, float velocity, float sum, const CentralTerms& terms) {
  return central + terms.step * sum + terms.momentum * velocity;
}

ARBALEST_HOST_DEVICE float moved_average(float average, float value, float weight) {
  return weight == 1.0F ? value : average + weight * (value - average);
}

// The sum of one element over replicas, in the order of the pairwise tree of engine/passes/averaging.h. Each added
// value is the sum of a group of kSumGroup replicas; only the last group may be smaller. There must be fewer than
// 2^levels values. All indices are compile-time constants, so that a GPU keeps the partial sums in registers. Value:
// float, or a group of floats.
template <int levels, typename Value = float>
struct PairwiseSum {
  Value partial[levels] = {};  // sums of 2^level values each, valid if bit `level` of count is set
  std::int32_t count = 0;

  ARBALEST_HOST_DEVICE void add(Value value) {
    bool carries = true;
    ARBALEST_UNROLL
    for (int level = 0; level < levels; ++level) {
      const bool is_full = ((count >> level) & 1) != 0;
      if (carries && !is_full) partial[level] = value;
      carries = carries && is_full;
      if (carries) value = partial[level] + value;
    }
    ++count;
  }

  ARBALEST_HOST_DEVICE Value total() const {
    Value sum{};
    bool is_first = true;
    ARBALEST_UNROLL
    for (int level = 0; level < levels; ++level) {
      if (((count >> level) & 1) == 0) continue;
      sum = is_first ? partial[level] : partial[level] + sum;
      is_first = false;
    }
    return sum;
  }
};

// A power of two, so that the sum of a group is a subtree. The values of a group are read together, which keeps the
// memory busy, and the tree is updated once per group.
constexpr std::int32_t kSumGroup = 4;

// The sum of values [first, min(first + kSumGroup, count)), first < count, in the tree's order. Calls value(j) once for
// each.
template <typename Read>
ARBALEST_HOST_DEVICE auto sum_of_group(std::int32_t first, std::int32_t count, const Read& value) {
  const auto left = value(first);
  if (count - first == 1) return left;
  const auto right = value(first + 1);
  if (count - first == 2) return left + right;
  const auto next = value(first + 2);
  if (count - first == 3) return (left + right) + next;
  return (left + right) + (next + value(first + 3));
}

// The sum of values [0, count) by the pairwise tree; 0 if count is 0. count <= kSumGroup (2^levels - 1).
template <int levels, typename Read>
ARBALEST_HOST_DEVICE auto pairwise_sum(std::int32_t count, const Read& value) {
  PairwiseSum<levels, decltype(value(0))> sum;
  for (std::int32_t first = 0; first < count; first += kSumGroup) sum.add(sum_of_group(first, count, value));
  return sum.total();
}

}  // namespace arbalest::engine::elementwise
