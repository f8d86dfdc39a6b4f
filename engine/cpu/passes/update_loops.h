// The loops of a learner's step over flat vectors, which the passes of several kinds of updates share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/weight_update.h"

namespace arbalest::engine::cpu {

// The input of the step: the gradient, or the mini-batch's statistics.
template <typename Step>
const float* source_of(const WeightUpdate& task) {
  return std::is_same_v<Step, elementwise::StatisticStep> && task.statistics != nullptr ? task.statistics
                                                                                        : task.gradient;
}

template <typename Step>
std::int32_t count_refused(const WeightUpdate& task, std::int64_t begin, std::int64_t end, Step step) {
  const float* __restrict weights = task.weights;
  const float* __restrict gradient = source_of<Step>(task);
  std::int32_t refused = 0;
#pragma omp simd reduction(+ : refused)
  for (std::int64_t i = begin; i < end; ++i) refused += step.refuses(weights[i], gradient[i]) ? 1 : 0;
  return refused;
}

// Returns the number of elements that are not finite afterwards.
template <bool corrected, typename Step>
std::int32_t take_step(const WeightUpdate& task, std::int64_t begin, std::int64_t end, Step step) {
  float* __restrict weights = task.weights;
  float* __restrict first = task.state[0];
  float* __restrict second = task.state[1];
  const float* __restrict gradient = source_of<Step>(task);
  const float* __restrict reference = corrected ? task.references[task.step->reference] : nullptr;
  const float pull = task.step->pull;
  std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
  for (std::int64_t i = begin; i < end; ++i) {
    elementwise::ElementState state{};
    if constexpr (Step::kSlots > 0) state.slots[0] = first[i];
    if constexpr (Step::kSlots > 1) state.slots[1] = second[i];
    const float r = corrected ? reference[i] : 0.0F;
    const auto moved = elementwise::move_element<corrected>(step, weights[i], gradient[i], r, pull, state);
    if constexpr (Step::kSlots > 0) first[i] = state.slots[0];
    if constexpr (Step::kSlots > 1) second[i] = state.slots[1];
    weights[i] = moved.weight;
    non_finite += moved.non_finite;
  }
  return non_finite;
}

// One pass over elements [begin, end) of a range: for the rule's step, and for running statistics.
template <typename Step>
struct Passes {
  std::int32_t (*rule)(const WeightUpdate&, std::int64_t begin, std::int64_t end, Step);
  std::int32_t (*statistics)(const WeightUpdate&, std::int64_t begin, std::int64_t end, elementwise::StatisticStep);
};

// Runs the passes over all ranges, each with its step, divided between the threads. Returns the sum of their results.
template <typename Step>
std::int32_t sum_over_ranges(const WeightUpdate& task, const typename Step::Options& options, int threads,
                             const Passes<Step>& passes) {
  std::int64_t elements = 0;
  for (const UpdateRange& range : task.ranges) elements = std::max(elements, range.end);
  const float gradient_scale = task.gradient_scale == nullptr ? 1.0F : *task.gradient_scale;
  std::atomic<std::int32_t> total{0};
  for_ranges(threads, elements, [&](std::int64_t begin, std::int64_t end) {
    for (const UpdateRange& range : task.ranges) {
      const std::int64_t first = std::max(begin, range.begin);
      const std::int64_t last = std::min(end, range.end);
      if (first >= last) continue;
      total += range.is_statistic()
                   ? passes.statistics(task, first, last, elementwise::StatisticStep::make(range))
                   : passes.rule(task, first, last, Step::make(options, *task.step, range, gradient_scale));
    }
  });
  return total;
}

}  // namespace arbalest::engine::cpu
