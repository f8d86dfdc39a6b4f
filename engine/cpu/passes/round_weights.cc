#include "engine/passes/round_weights.h"

#include "engine/cpu/onednn/instruction_sets.h"
#include "engine/cpu/passes/native_bfloat16.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cpu {

void run_flat(const RoundWeights& task, const TaskContext& context) {
  const bool native = vector_instructions().avx512_bf16;
  for_ranges(context.threads, task.elements, [&](std::int64_t begin, std::int64_t end) {
    const float* __restrict weights = task.weights;
    BFloat16* __restrict rounded = task.rounded;
    if (native) return round_natively(weights + begin, rounded + begin, end - begin);
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) rounded[i] = elementwise::to_bfloat16(weights[i]);
  });
}

}  // namespace arbalest::engine::cpu
