#include "engine/passes/weight_update.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/passes/update_loops.h"
#include "engine/cpu/runtime/flat_tasks.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::StatisticStep;

// Takes the step and rounds the new weights to low precision, if that is wanted, part by part while they are in the
// first-level cache.
template <bool corrected, typename Step>
std::int32_t take_rounded_step(const WeightUpdate& task, std::int64_t begin, std::int64_t end, Step step) {
  if (task.rounded == nullptr) return take_step<corrected>(task, begin, end, step);
  constexpr std::int64_t kPart = 1024;  // elements
  std::int32_t non_finite = 0;
  for (std::int64_t first = begin; first < end; first += kPart) {
    const std::int64_t count = std::min(kPart, end - first);
    non_finite += take_step<corrected>(task, first, first + count, step);
    run_flat(RoundWeights{task.weights + first, task.rounded + first, count}, {.threads = 1});
  }
  return non_finite;
}

constexpr auto take_statistics = take_rounded_step<false, StatisticStep>;

template <typename Step>
void run(const WeightUpdate& task, const typename Step::Options& options, int threads) {
  const bool pulled = task.references[0] != nullptr && task.references[1] != nullptr;
  ARBALEST_CHECK(pulled || (task.references[0] == nullptr && task.references[1] == nullptr));
  if (pulled) {
    const auto rule_pass = task.step->pull == 0.0F ? take_rounded_step<false, Step> : take_rounded_step<true, Step>;
    *task.non_finite = sum_over_ranges<Step>(task, options, threads, {rule_pass, take_statistics});
    return;
  }
  *task.non_finite = sum_over_ranges<Step>(task, options, threads, {count_refused<Step>, count_refused<StatisticStep>});
  if (*task.non_finite != 0) return;
  sum_over_ranges<Step>(task, options, threads, {take_rounded_step<false, Step>, take_statistics});
}

}  // namespace

void run_flat(const WeightUpdate& task, const TaskContext& context) {
  elementwise::with_step(task.rule, [&]<typename Kind>(Kind /*kind*/, const auto& options) {
    run<typename Kind::Type>(task, options, context.threads);
  });
}

}  // namespace arbalest::engine::cpu
