#include "engine/passes/tensor_sum.h"

#include <type_traits>

#include "engine/cpu/onednn/instruction_sets.h"
#include "engine/cpu/passes/native_bfloat16.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

void run_flat(const TensorSum& task, const TaskContext& context) {
  const bool native = vector_instructions().avx512_bf16;
  with_elements(task.dtype, [&]<typename T>(ElementKind<T>) {
    const auto* a = static_cast<const T*>(task.a);
    const auto* b = static_cast<const T*>(task.b);
    auto* sum = static_cast<T*>(task.sum);
    for_ranges(context.threads, task.elements, [&](std::int64_t begin, std::int64_t end) {
      if constexpr (std::is_same_v<T, BFloat16>) {
        if (native) return add_natively(a + begin, b + begin, sum + begin, end - begin);
      }
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        elementwise::store(elementwise::load(a[i]) + elementwise::load(b[i]), sum[i]);
      }
    });
  });
}

}  // namespace arbalest::engine::cpu
