#include "engine/passes/moving_average.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/elementwise/averaging.h"

namespace arbalest::engine::cuda {

namespace {

__device__ void move_elements(const MovingAverage task) {
  for_groups<kWideFloats>(task.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    Floats<kNumbers> average = load_group<kNumbers>(task.average, group);
    const Floats<kNumbers> values = load_group<kNumbers>(task.values, group);
    for (int n = 0; n < kNumbers; ++n) {
      average.at[n] = elementwise::moved_average(average.at[n], values.at[n], task.weight);
    }
    store_group(average, task.average, group);
  });
}

}  // namespace

void run_flat(const MovingAverage& task, const StreamContext& context) {
  launch<move_elements>(blocks_for_groups<kWideFloats>(task.elements), context.stream, task);
}

}  // namespace arbalest::engine::cuda
