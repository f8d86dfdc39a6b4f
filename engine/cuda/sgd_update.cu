#include <algorithm>

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/finite.h"
#include "engine/elementwise/sgd_step.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::SgdFactors;

constexpr std::size_t kRanges = 64;  // of one launch; they travel as a kernel argument

// An SgdUpdate of at most kRanges ranges.
struct RangesUpdate {
  float* weights;
  float* momentum;
  BFloat16* rounded;  // null: not wanted
  const float* gradient;
  const float* central[2];
  float momentum_factor;
  float weight_decay;
  const StepParameters* step;
  std::int32_t* non_finite;
  std::int64_t elements;  // of all ranges
  UpdateRange ranges[kRanges];
};

// Calls body(i, factors) for the elements of all ranges that fall to this thread. The threads share out the ranges as
// if they lay end to end, so small ranges don't leave the grid idle.
template <typename Body>
__device__ void for_range_elements(const RangesUpdate& task, float alpha, const Body& body) {
  int range = -1;
  std::int64_t end = 0;    // of the range, end to end
  std::int64_t shift = 0;  // from there to the element
  SgdFactors factors{};
  for (std::int64_t i = first_element(); i < task.elements; i += element_step()) {
    while (i >= end) {
      ++range;
      const UpdateRange& of = task.ranges[range];
      shift = of.begin - end;
      end += of.end - of.begin;
      factors = {task.step->learning_rate * of.learning_rate_multiplier, task.weight_decay * of.decay_multiplier,
                 task.momentum_factor, alpha};
    }
    body(i + shift, factors);
  }
}

// Counts are integers, so their sum does not depend on the order; and as a rule there is nothing to add.
__device__ void add_count(std::int32_t count, std::int32_t* total) {
  if (count != 0) atomicAdd(total, count);
}

__global__ void count_refused(const RangesUpdate task) {
  std::int32_t refused = 0;
  for_range_elements(task, 0.0F, [&](std::int64_t i, const SgdFactors& factors) {
    refused += elementwise::is_refused(task.weights[i], task.gradient[i], factors) ? 1 : 0;
  });
  add_count(refused, task.non_finite);
}

// Returns how many weights this thread leaves non-finite.
__device__ std::int32_t step_locally(const RangesUpdate& task) {
  std::int32_t non_finite = 0;
  for_range_elements(task, 0.0F, [&](std::int64_t i, const SgdFactors& factors) {
    const float weight = task.weights[i];
    const float v = elementwise::next_momentum(weight, task.momentum[i], task.gradient[i], factors);
    const float w = weight + v;
    task.momentum[i] = v;
    task.weights[i] = w;
    if (task.rounded != nullptr) task.rounded[i] = elementwise::to_bfloat16(w);
    non_finite += elementwise::count_non_finite(w);
  });
  return non_finite;
}

__device__ std::int32_t step_corrected(const RangesUpdate& task, float alpha) {
  const float* central = task.central[task.step->parity];
  std::int32_t non_finite = 0;
  for_range_elements(task, alpha, [&](std::int64_t i, const SgdFactors& factors) {
    const float weight = task.weights[i];
    const float c = elementwise::correction(weight, central[i], factors);
    const float v = elementwise::next_momentum(weight, task.momentum[i], task.gradient[i], factors);
    const float w = weight + v - c;
    task.momentum[i] = v;
    task.weights[i] = w;
    if (task.rounded != nullptr) task.rounded[i] = elementwise::to_bfloat16(w);
    non_finite += elementwise::count_non_finite(w);
  });
  return non_finite;
}

__global__ void step_unless_refused(const RangesUpdate task) {
  if (*task.non_finite == 0) step_locally(task);
}

__global__ void step_averaged(const RangesUpdate task) {
  const float alpha = task.step->alpha;
  add_count(alpha == 0.0F ? step_locally(task) : step_corrected(task, alpha), task.non_finite);
}

void launch_over_ranges(void (*kernel)(RangesUpdate), const SgdUpdate& task, cudaStream_t stream) {
  for (std::size_t first = 0; first < task.ranges.size(); first += kRanges) {
    const auto ranges = task.ranges.subspan(first, std::min(kRanges, task.ranges.size() - first));
    RangesUpdate part{task.weights,
                      task.momentum,
                      task.rounded,
                      task.gradient,
                      {task.central[0], task.central[1]},
                      task.momentum_factor,
                      task.weight_decay,
                      task.step,
                      task.non_finite,
                      0,
                      {}};
    std::copy(ranges.begin(), ranges.end(), part.ranges);
    for (const UpdateRange& range : ranges) part.elements += range.end - range.begin;
    launch(kernel, blocks_for(part.elements), stream, part);
  }
}

}  // namespace

void run_flat(const SgdUpdate& task, const StreamContext& context) {
  const bool averaged = task.central[0] != nullptr && task.central[1] != nullptr;
  ARBALEST_CHECK(averaged || (task.central[0] == nullptr && task.central[1] == nullptr));
  ARBALEST_CUDA(cudaMemsetAsync(task.non_finite, 0, sizeof(*task.non_finite), context.stream));
  if (averaged) {
    launch_over_ranges(step_averaged, task, context.stream);
    return;
  }
  launch_over_ranges(count_refused, task, context.stream);
  launch_over_ranges(step_unless_refused, task, context.stream);
}

}  // namespace arbalest::engine::cuda
