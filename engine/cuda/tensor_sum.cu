#include "engine/ops/tensor_sum.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

template <typename T>
__global__ void add_elements(const T* a, const T* b, T* sum, std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    elementwise::store(elementwise::load(a[i]) + elementwise::load(b[i]), sum[i]);
  }
}

template <typename T>
void launch_sum(const TensorSum& task, cudaStream_t stream) {
  launch(add_elements<T>, blocks_for(task.elements), stream, static_cast<const T*>(task.a),
         static_cast<const T*>(task.b), static_cast<T*>(task.sum), task.elements);
}

}  // namespace

void run_flat(const TensorSum& task, const StreamContext& context) {
  if (task.dtype == DType::kBFloat16) {
    launch_sum<BFloat16>(task, context.stream);
  } else {
    launch_sum<float>(task, context.stream);
  }
}

}  // namespace arbalest::engine::cuda
