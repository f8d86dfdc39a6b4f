#include "engine/elementwise/weight_update.h"

#include <algorithm>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/last_block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::ElementState;
using elementwise::StatisticStep;

constexpr std::size_t kRanges = 64;  // per launch; the ranges are part of a kernel argument

// Ranges of a WeightUpdate, which count groups of elements.
struct Ranges {
  UpdateRange at[kRanges];
};

// A WeightUpdate of at most kRanges ranges, with the options of its rule.
template <typename Options>
struct RangesUpdate {
  float* weights;
  BFloat16* rounded;
  float* state[kMaxStateSlots];
  const float* gradient;
  const float* statistics;  // the mini-batch's running statistics; equals `gradient` if the task has none
  const float* references[2];
  Options options;
  const float* gradient_scale;
  const StepParameters* step;
  std::int32_t* non_finite;
  unsigned* arrivals;   // two counters, zero between kernels: blocks that have finished, and their total count
  std::int64_t blocks;  // in all launches of the pass
  std::int64_t groups;  // in all ranges

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(RangesUpdate& of, Visitor&& visit) {
    visit(of.weights);
    visit(of.rounded);
    visit(of.state[0]);
    visit(of.state[1]);
    visit(of.gradient);
    visit(of.statistics);
    visit(of.references[0]);
    visit(of.references[1]);
    visit(of.gradient_scale);
    visit(of.step);
    visit(of.non_finite);
    visit(of.arrivals);
  }
};

template <typename Step>
using UpdateBy = RangesUpdate<typename Step::Options>;

// The input of the step: the gradient, or the mini-batch's statistics.
template <typename Step, typename Task>
__device__ const float* source_of(const Task& task) {
  return std::is_same_v<Step, StatisticStep> ? task.statistics : task.gradient;
}

// Calls body(group, step) for each group of the ranges that is assigned to this thread; `step` is a Step or a
// StatisticStep. Groups are numbered across all ranges, so small ranges don't leave the grid idle.
template <typename Step, typename Body>
__device__ void for_range_groups(const UpdateBy<Step>& task, const Ranges& ranges, const Body& body) {
  const float gradient_scale = task.gradient_scale == nullptr ? 1.0F : *task.gradient_scale;
  int range = -1;
  std::int64_t end = 0;    // end of the range in that numbering
  std::int64_t shift = 0;  // from the number to the group
  Step step{};
  StatisticStep statistic{};
  for (std::int64_t i = first_element(); i < task.groups; i += element_step()) {
    while (i >= end) {
      ++range;
      const UpdateRange& of = ranges.at[range];
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

// Adds up the counts of the threads of all launches; the last block to finish writes the total to task.non_finite.
// Counts are integers, so their sum does not depend on the order. Usually all counts are zero.
template <typename Options>
__device__ void add_count(std::int32_t count, const RangesUpdate<Options>& task) {
  unsigned* const total = task.arrivals + 1;
  if (count != 0) atomicAdd(total, static_cast<unsigned>(count));
  if (!is_last_block(task.arrivals, static_cast<unsigned>(task.blocks)) || threadIdx.x != 0) return;
  *task.non_finite = static_cast<std::int32_t>(*static_cast<volatile unsigned*>(total));
  *total = 0U;
}

template <typename Step, int kNumbers>
__device__ void count_refused(const UpdateBy<Step> task, const Ranges& ranges) {
  std::int32_t refused = 0;
  for_range_groups<Step>(task, ranges, [&]<typename Kind>(std::int64_t group, const Kind& step) {
    const Floats<kNumbers> weights = load_group<kNumbers>(task.weights, group);
    const Floats<kNumbers> source = load_group<kNumbers>(source_of<Kind>(task), group);
    for (int n = 0; n < kNumbers; ++n) refused += step.refuses(weights.at[n], source.at[n]) ? 1 : 0;
  });
  add_count(refused, task);
}

// Updates a group; returns how many of its elements become non-finite. `reference` is null unless corrected.
template <bool corrected, int kNumbers, typename Task, typename Step>
__device__ std::int32_t move_group(const Task& task, std::int64_t group, const Step& step, const float* reference,
                                   float pull) {
  Floats<kNumbers> weights = load_group<kNumbers>(task.weights, group);
  const Floats<kNumbers> source = load_group<kNumbers>(source_of<Step>(task), group);
  Floats<kNumbers> state[kMaxStateSlots] = {};
  Floats<kNumbers> references{};
  for (int slot = 0; slot < Step::kSlots; ++slot) state[slot] = load_group<kNumbers>(task.state[slot], group);
  if constexpr (corrected) references = load_group<kNumbers>(reference, group);
  std::int32_t non_finite = 0;
  for (int n = 0; n < kNumbers; ++n) {
    ElementState of_element{};
    for (int slot = 0; slot < Step::kSlots; ++slot) of_element.slots[slot] = state[slot].at[n];
    const auto moved =
        elementwise::move_element<corrected>(step, weights.at[n], source.at[n], references.at[n], pull, of_element);
    for (int slot = 0; slot < Step::kSlots; ++slot) state[slot].at[n] = of_element.slots[slot];
    weights.at[n] = moved.weight;
    non_finite += moved.non_finite;
  }
  for (int slot = 0; slot < Step::kSlots; ++slot) store_group(state[slot], task.state[slot], group);
  store_group(weights, task.weights, group);
  if (task.rounded != nullptr) store_group(weights, task.rounded, group);
  return non_finite;
}

// Returns how many elements this thread makes non-finite.
template <bool corrected, typename Step, int kNumbers>
__device__ std::int32_t take_step(const UpdateBy<Step>& task, const Ranges& ranges) {
  const float pull = task.step->pull;
  const float* reference = corrected ? (task.step->reference == 0 ? task.references[0] : task.references[1]) : nullptr;
  std::int32_t non_finite = 0;
  for_range_groups<Step>(task, ranges, [&]<typename Kind>(std::int64_t group, const Kind& step) {
    constexpr bool kPulled = corrected && !std::is_same_v<Kind, StatisticStep>;
    non_finite += move_group<kPulled, kNumbers>(task, group, step, reference, pull);
  });
  return non_finite;
}

template <typename Step, int kNumbers>
__device__ void step_unless_refused(const UpdateBy<Step> task, const Ranges& ranges) {
  if (*task.non_finite == 0) take_step<false, Step, kNumbers>(task, ranges);
}

template <typename Step, int kNumbers>
__device__ void step_averaged(const UpdateBy<Step> task, const Ranges& ranges) {
  const std::int32_t count = task.step->pull == 0.0F ? take_step<false, Step, kNumbers>(task, ranges)
                                                     : take_step<true, Step, kNumbers>(task, ranges);
  add_count(count, task);
}

std::int64_t elements_of(std::span<const UpdateRange> ranges) {
  std::int64_t elements = 0;
  for (const UpdateRange& range : ranges) elements += range.end - range.begin;
  return elements;
}

template <auto kernel, int kNumbers, typename Options>
void launch_over_ranges(const WeightUpdate& task, const Options& options, const StreamContext& context) {
  const auto ranges_from = [&](std::size_t first) {
    return task.ranges.subspan(first, std::min(kRanges, task.ranges.size() - first));
  };
  ARBALEST_CHECK(!task.ranges.empty());
  std::int64_t all_blocks = 0;
  for (std::size_t first = 0; first < task.ranges.size(); first += kRanges) {
    all_blocks += blocks_for(elements_of(ranges_from(first)) / kNumbers);
  }
  for (std::size_t first = 0; first < task.ranges.size(); first += kRanges) {
    const std::span<const UpdateRange> ranges = ranges_from(first);
    const RangesUpdate<Options> part{task.weights,
                                     task.rounded,
                                     {task.state[0], task.state[1]},
                                     task.gradient,
                                     task.statistics == nullptr ? task.gradient : task.statistics,
                                     {task.references[0], task.references[1]},
                                     options,
                                     task.gradient_scale,
                                     task.step,
                                     task.non_finite,
                                     context.arrivals,
                                     all_blocks,
                                     elements_of(ranges) / kNumbers};
    Ranges of_groups{};
    std::ranges::transform(ranges, of_groups.at, [](UpdateRange range) {
      range.begin /= kNumbers;
      range.end /= kNumbers;
      return range;
    });
    launch<kernel>(blocks_for(part.groups), context.stream, part, of_groups);
  }
}

template <typename Step, int kNumbers>
void run(const WeightUpdate& task, const typename Step::Options& options, const StreamContext& context) {
  const bool pulled = task.references[0] != nullptr && task.references[1] != nullptr;
  ARBALEST_CHECK(pulled || (task.references[0] == nullptr && task.references[1] == nullptr));
  if (pulled) {
    launch_over_ranges<step_averaged<Step, kNumbers>, kNumbers>(task, options, context);
    return;
  }
  launch_over_ranges<count_refused<Step, kNumbers>, kNumbers>(task, options, context);
  launch_over_ranges<step_unless_refused<Step, kNumbers>, kNumbers>(task, options, context);
}

// A learner's ranges begin and end at multiples of engine::kAlignment. Other ranges are updated one element at a time.
bool is_in_groups(std::span<const UpdateRange> ranges, std::int64_t numbers) {
  return std::ranges::all_of(
      ranges, [&](const UpdateRange& range) { return range.begin % numbers == 0 && range.end % numbers == 0; });
}

}  // namespace

void run_flat(const WeightUpdate& task, const StreamContext& context) {
  elementwise::with_step(task.rule, [&]<typename Kind>(Kind /*kind*/, const auto& options) {
    if (is_in_groups(task.ranges, kWideFloats)) {
      run<typename Kind::Type, kWideFloats>(task, options, context);
    } else {
      run<typename Kind::Type, 1>(task, options, context);
    }
  });
}

}  // namespace arbalest::engine::cuda
