#include "engine/elementwise/gradient_clip.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"

namespace arbalest::engine::cuda {

namespace {

static_assert(sizeof(double) * kMaxBlocks <= sizeof(float) * kPartials);

__global__ void sum_squares(const float* gradient, std::int64_t elements, double* sums) {
  double sum = 0.0;
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const auto value = static_cast<double>(gradient[i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void store_scale(const double* sums, std::int64_t count, float max_norm, float* scale) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *scale = elementwise::clip_scale(sum, max_norm);
}

}  // namespace

void run_flat(const GradientClip& task, const StreamContext& context) {
  auto* sums = reinterpret_cast<double*>(context.partials);
  const std::int64_t blocks = blocks_for(task.elements);
  launch(sum_squares, blocks, context.stream, task.gradient, task.elements, sums);
  launch(store_scale, 1, context.stream, sums, blocks, task.max_norm, task.scale);
}

}  // namespace arbalest::engine::cuda
