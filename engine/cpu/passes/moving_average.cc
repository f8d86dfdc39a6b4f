#include "engine/passes/moving_average.h"

#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/averaging.h"

namespace arbalest::engine::cpu {

void run_flat(const MovingAverage& task, const TaskContext& context) {
  for_ranges(context.threads, task.elements, [&](std::int64_t begin, std::int64_t end) {
    const float* __restrict values = task.values;
    float* __restrict average = task.average;
    const float weight = task.weight;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      average[i] = elementwise::moved_average(average[i], values[i], weight);
    }
  });
}

}  // namespace arbalest::engine::cpu
