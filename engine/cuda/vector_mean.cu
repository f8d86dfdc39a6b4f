#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/cuda/vector_group.h"
#include "engine/elementwise/averaging.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

template <std::size_t capacity>
__global__ void average_vectors(const VectorGroup<capacity> vectors, std::int64_t offset, float* mean,
                                std::int64_t elements, float factor) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const float sum = elementwise::pairwise_sum<VectorGroup<capacity>::kLevels>(
        vectors.count, [&](std::int32_t j) { return vectors.addresses[j][offset + i]; });
    mean[i] = sum * factor;
  }
}

}  // namespace

void run_flat(const VectorMean& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.vectors.empty());
  with_group(task.vectors, [&]<std::size_t capacity>(const VectorGroup<capacity>& vectors) {
    launch(average_vectors<capacity>, blocks_for(task.elements), context.stream, vectors, task.offset, task.mean,
           task.elements, task.factor);
  });
}

}  // namespace arbalest::engine::cuda
