#include "engine/elementwise/gradient_clip.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/last_block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"

namespace arbalest::engine {

template <typename Visitor>
__host__ __device__ constexpr void visit_addresses(GradientClip& of, Visitor&& visit) {
  visit(of.gradient);
  visit(of.scale);
}

}  // namespace arbalest::engine

namespace arbalest::engine::cuda {

namespace {

static_assert(sizeof(double) * kMaxBlocks <= sizeof(float) * kPartials);

//   sums: [blocks], one partial sum per block
__device__ void find_scale(const GradientClip task, double* sums, unsigned* arrivals) {
  double sum = 0.0;
  for_groups<kWideFloats>(task.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    const Floats<kNumbers> gradient = load_group<kNumbers>(task.gradient, group);
    for (int n = 0; n < kNumbers; ++n) {
      const auto value = static_cast<double>(gradient.at[n]);
      sum += value * value;
    }
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  if (!is_last_block(arrivals, gridDim.x)) return;
  sum = 0.0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) {
    sum += *static_cast<const volatile double*>(sums + block);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) *task.scale = elementwise::clip_scale(sum, task.max_norm);
}

}  // namespace

void run_flat(const GradientClip& task, const StreamContext& context) {
  launch<find_scale>(blocks_for_groups<kWideFloats>(task.elements), context.stream, task,
                     reinterpret_cast<double*>(context.partials), context.arrivals);
}

}  // namespace arbalest::engine::cuda
