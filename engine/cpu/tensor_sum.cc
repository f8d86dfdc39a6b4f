#include "engine/ops/tensor_sum.h"

#include "engine/cpu/flat_tasks.h"
#include "engine/cpu/parallel.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

void run_flat(const TensorSum& task, const TaskContext& context) {
  ARBALEST_CHECK(task.dtype == DType::kFloat32);
  const auto* a = static_cast<const float*>(task.a);
  const auto* b = static_cast<const float*>(task.b);
  auto* sum = static_cast<float*>(task.sum);
  for_ranges(context.threads, task.elements, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) sum[i] = a[i] + b[i];
  });
}

}  // namespace arbalest::engine::cpu
