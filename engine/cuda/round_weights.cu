#include "engine/ops/round_weights.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

__global__ void round_elements(const RoundWeights task) {
  for (std::int64_t i = first_element(); i < task.elements; i += element_step()) {
    task.rounded[i] = elementwise::to_bfloat16(task.weights[i]);
  }
}

}  // namespace

void run_flat(const RoundWeights& task, const StreamContext& context) {
  launch(round_elements, blocks_for(task.elements), context.stream, task);
}

}  // namespace arbalest::engine::cuda
