#include "engine/passes/tensor_sum.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"

namespace arbalest::engine::cuda {

namespace {

template <typename T>
__device__ void add_elements(const T* a, const T* b, T* sum, std::int64_t elements) {
  for_groups<kWide<T>>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    store_group(load_group<kNumbers>(a, group) + load_group<kNumbers>(b, group), sum, group);
  });
}

template <typename T>
void launch_sum(const TensorSum& task, const TeamStream& stream) {
  launch<add_elements<T>>(blocks_for_groups<kWide<T>>(task.elements), stream, static_cast<const T*>(task.a),
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
