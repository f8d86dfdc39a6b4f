#include "engine/ops/moving_average.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/elementwise/averaging.h"

namespace arbalest::engine::cuda {

namespace {

__global__ void move_elements(const MovingAverage task) {
  for (std::int64_t i = first_element(); i < task.elements; i += element_step()) {
    task.average[i] = elementwise::moved_average(task.average[i], task.values[i], task.weight);
  }
}

}  // namespace

void run_flat(const MovingAverage& task, const StreamContext& context) {
  launch(move_elements, blocks_for(task.elements), context.stream, task);
}

}  // namespace arbalest::engine::cuda
