#include "engine/elementwise/weight_update.h"

#include <algorithm>
#include <type_traits>

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::ElementState;
using elementwise::StatisticStep;

constexpr std::size_t kRanges = 64;  // of one launch; they travel as a kernel argument

// A WeightUpdate of at most kRanges ranges, by a rule whose options are these.
template <typename Options>
struct RangesUpdate {
  float* weights;
  BFloat16* rounded;
  float* state[kMaxStateSlots];
  const float* gradient;
  const float* statistics;  // what ranges of running statistics go by; the gradient where the task has none
  const float* references[2];
  Options options;
  const float* gradient_scale;
  const StepParameters* step;
  std::int32_t* non_finite;
  std::int64_t elements;  // of all ranges
  UpdateRange ranges[kRanges];
};

template <typename Step>
using UpdateBy = RangesUpdate<typename Step::Options>;

// What the step goes by: the gradient, or the mini-batch's statistics.
template <typename Step, typename Task>
__device__ const float* source_of(const Task& task) {
  return std::is_same_v<Step, StatisticStep> ? task.statistics : task.gradient;
}

// Calls body(i, step) for the elements of all ranges that fall to this thread; `step` is a Step or a StatisticStep. The
// threads share out the ranges as if they lay end to end, so small ranges don't leave the grid idle.
template <typename Step, typename Body>
__device__ void for_range_elements(const UpdateBy<Step>& task, const Body& body) {
  const float gradient_scale = task.gradient_scale == nullptr ? 1.0F : *task.gradient_scale;
  int range = -1;
  std::int64_t end = 0;    // of the range, end to end
  std::int64_t shift = 0;  // from there to the element
  Step step{};
  StatisticStep statistic{};
  for (std::int64_t i = first_element(); i < task.elements; i += element_step()) {
    while (i >= end) {
      ++range;
      const UpdateRange& of = task.ranges[range];
      shift = of.begin - end;
      end += of.end - of.begin;
      step = Step::make(task.options, *task.step, of, gradient_scale);
      statistic = StatisticStep::make(of);
    }
    if (statistic.momentum > 0.0F) {
      body(i + shift, statistic);
    } else {
      body(i + shift, step);
    }
  }
}

// Counts are integers, so their sum does not depend on the order; and as a rule there is nothing to add.
__device__ void add_count(std::int32_t count, std::int32_t* total) {
  if (count != 0) atomicAdd(total, count);
}

template <typename Step>
__global__ void count_refused(const UpdateBy<Step> task) {
  std::int32_t refused = 0;
  for_range_elements<Step>(task, [&]<typename Kind>(std::int64_t i, const Kind& step) {
    refused += step.refuses(task.weights[i], source_of<Kind>(task)[i]) ? 1 : 0;
  });
  add_count(refused, task.non_finite);
}

// Moves element i; returns whether that leaves it non-finite. `reference`: of the element; not used unless corrected.
template <bool corrected, typename Task, typename Step>
__device__ std::int32_t move_one(const Task& task, std::int64_t i, const Step& step, float reference, float pull) {
  ElementState state{};
  if constexpr (Step::kSlots > 0) state.slots[0] = task.state[0][i];
  if constexpr (Step::kSlots > 1) state.slots[1] = task.state[1][i];
  const auto moved =
      elementwise::move_element<corrected>(step, task.weights[i], source_of<Step>(task)[i], reference, pull, state);
  if constexpr (Step::kSlots > 0) task.state[0][i] = state.slots[0];
  if constexpr (Step::kSlots > 1) task.state[1][i] = state.slots[1];
  task.weights[i] = moved.weight;
  if (task.rounded != nullptr) task.rounded[i] = elementwise::to_bfloat16(moved.weight);
  return moved.non_finite;
}

// Returns how many elements this thread leaves non-finite.
template <bool corrected, typename Step>
__device__ std::int32_t take_step(const UpdateBy<Step>& task) {
  const float pull = task.step->pull;
  const float* reference = corrected ? task.references[task.step->reference] : nullptr;
  std::int32_t non_finite = 0;
  for_range_elements<Step>(task, [&]<typename Kind>(std::int64_t i, const Kind& step) {
    constexpr bool kPulled = corrected && !std::is_same_v<Kind, StatisticStep>;
    non_finite += move_one<kPulled>(task, i, step, kPulled ? reference[i] : 0.0F, pull);
  });
  return non_finite;
}

template <typename Step>
__global__ void step_unless_refused(const UpdateBy<Step> task) {
  if (*task.non_finite == 0) take_step<false, Step>(task);
}

template <typename Step>
__global__ void step_averaged(const UpdateBy<Step> task) {
  const std::int32_t count = task.step->pull == 0.0F ? take_step<false, Step>(task) : take_step<true, Step>(task);
  add_count(count, task.non_finite);
}

template <typename Options>
void launch_over_ranges(void (*kernel)(RangesUpdate<Options>), const WeightUpdate& task, const Options& options,
                        cudaStream_t stream) {
  for (std::size_t first = 0; first < task.ranges.size(); first += kRanges) {
    const auto ranges = task.ranges.subspan(first, std::min(kRanges, task.ranges.size() - first));
    RangesUpdate<Options> part{task.weights,
                               task.rounded,
                               {task.state[0], task.state[1]},
                               task.gradient,
                               task.statistics == nullptr ? task.gradient : task.statistics,
                               {task.references[0], task.references[1]},
                               options,
                               task.gradient_scale,
                               task.step,
                               task.non_finite,
                               0,
                               {}};
    std::copy(ranges.begin(), ranges.end(), part.ranges);
    for (const UpdateRange& range : ranges) part.elements += range.end - range.begin;
    launch(kernel, blocks_for(part.elements), stream, part);
  }
}

template <typename Step>
void run(const WeightUpdate& task, const typename Step::Options& options, cudaStream_t stream) {
  const bool pulled = task.references[0] != nullptr && task.references[1] != nullptr;
  ARBALEST_CHECK(pulled || (task.references[0] == nullptr && task.references[1] == nullptr));
  ARBALEST_CUDA(cudaMemsetAsync(task.non_finite, 0, sizeof(*task.non_finite), stream));
  if (pulled) {
    launch_over_ranges(step_averaged<Step>, task, options, stream);
    return;
  }
  launch_over_ranges(count_refused<Step>, task, options, stream);
  launch_over_ranges(step_unless_refused<Step>, task, options, stream);
}

}  // namespace

void run_flat(const WeightUpdate& task, const StreamContext& context) {
  elementwise::with_step(task.rule, [&]<typename Kind>(Kind /*kind*/, const auto& options) {
    run<typename Kind::Type>(task, options, context.stream);
  });
}

}  // namespace arbalest::engine::cuda
