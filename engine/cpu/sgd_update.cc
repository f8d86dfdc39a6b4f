#include <algorithm>
#include <atomic>

#include "engine/cpu/flat_tasks.h"
#include "engine/cpu/parallel.h"
#include "engine/elementwise/finite.h"
#include "engine/elementwise/sgd_step.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::SgdFactors;

SgdFactors factors_of(const SgdUpdate& task, const UpdateRange& range) {
  return {task.step->learning_rate * range.learning_rate_multiplier, task.weight_decay * range.decay_multiplier,
          task.momentum_factor, task.step->alpha};
}

std::int32_t count_refused(const SgdUpdate& task, std::int64_t begin, std::int64_t end, const SgdFactors& factors) {
  const float* __restrict weights = task.weights;
  const float* __restrict gradient = task.gradient;
  std::int32_t refused = 0;
#pragma omp simd reduction(+ : refused)
  for (std::int64_t i = begin; i < end; ++i) {
    refused += elementwise::is_refused(weights[i], gradient[i], factors) ? 1 : 0;
  }
  return refused;
}

// Both step functions return the number of weights that they leave non-finite.
std::int32_t step_locally(const SgdUpdate& task, std::int64_t begin, std::int64_t end, const SgdFactors& factors) {
  float* __restrict weights = task.weights;
  float* __restrict momentum = task.momentum;
  const float* __restrict gradient = task.gradient;
  std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
  for (std::int64_t i = begin; i < end; ++i) {
    const float v = elementwise::next_momentum(weights[i], momentum[i], gradient[i], factors);
    const float w = weights[i] + v;
    momentum[i] = v;
    weights[i] = w;
    non_finite += elementwise::count_non_finite(w);
  }
  return non_finite;
}

std::int32_t step_corrected(const SgdUpdate& task, std::int64_t begin, std::int64_t end, const SgdFactors& factors) {
  float* __restrict weights = task.weights;
  float* __restrict momentum = task.momentum;
  const float* __restrict gradient = task.gradient;
  const float* __restrict central = task.central[task.step->parity];
  std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
  for (std::int64_t i = begin; i < end; ++i) {
    const float c = elementwise::correction(weights[i], central[i], factors);
    const float v = elementwise::next_momentum(weights[i], momentum[i], gradient[i], factors);
    const float w = weights[i] + v - c;
    momentum[i] = v;
    weights[i] = w;
    non_finite += elementwise::count_non_finite(w);
  }
  return non_finite;
}

// Runs `pass` over all ranges, split between the threads, and adds up what it returns.
template <typename Pass>
std::int32_t sum_over_ranges(const SgdUpdate& task, int threads, const Pass& pass) {
  std::int64_t elements = 0;
  for (const UpdateRange& range : task.ranges) elements = std::max(elements, range.end);
  std::atomic<std::int32_t> total{0};
  for_ranges(threads, elements, [&](std::int64_t begin, std::int64_t end) {
    for (const UpdateRange& range : task.ranges) {
      const std::int64_t first = std::max(begin, range.begin);
      const std::int64_t last = std::min(end, range.end);
      if (first < last) total += pass(task, first, last, factors_of(task, range));
    }
  });
  return total;
}

// The new weights once more, in low precision, where that is wanted.
void round_weights(const SgdUpdate& task, const TaskContext& context) {
  if (task.rounded == nullptr) return;
  for (const UpdateRange& range : task.ranges) {
    run_flat(RoundWeights{task.weights + range.begin, task.rounded + range.begin, range.end - range.begin}, context);
  }
}

}  // namespace

void run_flat(const SgdUpdate& task, const TaskContext& context) {
  const bool averaged = task.central[0] != nullptr && task.central[1] != nullptr;
  ARBALEST_CHECK(averaged || (task.central[0] == nullptr && task.central[1] == nullptr));
  if (!averaged) {
    *task.non_finite = sum_over_ranges(task, context.threads, count_refused);
    if (*task.non_finite != 0) return;
    sum_over_ranges(task, context.threads, step_locally);
    round_weights(task, context);
    return;
  }
  *task.non_finite = sum_over_ranges(task, context.threads, task.step->alpha == 0.0F ? step_locally : step_corrected);
  round_weights(task, context);
}

}  // namespace arbalest::engine::cpu
