#include "engine/passes/vector_hash.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/last_block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/elementwise/hash.h"

namespace arbalest::engine::cuda {

namespace {

static_assert(sizeof(std::uint64_t) * kMaxBlocks <= sizeof(float) * kPartials);

__device__ void hash_elements(const VectorHash task, std::uint64_t* sums, unsigned* arrivals) {
  std::uint64_t sum = 0;
  for_groups<kWideFloats>(task.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    const Floats<kNumbers> values = load_group<kNumbers>(task.values, group);
    for (int n = 0; n < kNumbers; ++n) sum += elementwise::hashed(values.at[n], group * kNumbers + n);
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  if (!is_last_block(arrivals, gridDim.x)) return;
  sum = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) {
    sum += *static_cast<const volatile std::uint64_t*>(sums + block);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) *task.hash = sum;
}

}  // namespace

void run_flat(const VectorHash& task, const StreamContext& context) {
  launch<hash_elements>(blocks_for_groups<kWideFloats>(task.elements), context.stream, task,
                        reinterpret_cast<std::uint64_t*>(context.partials), context.arrivals);
}

}  // namespace arbalest::engine::cuda
