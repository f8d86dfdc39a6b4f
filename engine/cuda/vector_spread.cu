#include "engine/ops/vector_spread.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/cuda/vector_group.h"
#include "engine/elementwise/averaging.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

struct Spread {
  double sum_of_squares;
  double square_of_sum;
};
static_assert(sizeof(Spread) * kMaxBlocks <= sizeof(float) * kPartials);

// All threads of the block must call it.
__device__ Spread sum_of_block(const Spread& of_thread) {
  return {block_sum(of_thread.sum_of_squares), block_sum(of_thread.square_of_sum)};
}

template <std::size_t capacity>
__global__ void sum_spreads(const VectorGroup<capacity> vectors, std::int64_t elements, Spread* sums) {
  Spread spread{};
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    float squares = 0.0F;
    const float sum = elementwise::pairwise_sum<VectorGroup<capacity>::kLevels>(vectors.count, [&](std::int32_t j) {
      const float value = vectors.addresses[j][i];
      squares += value * value;
      return value;
    });
    spread.sum_of_squares += static_cast<double>(squares);
    spread.square_of_sum += static_cast<double>(sum) * static_cast<double>(sum);
  }
  spread = sum_of_block(spread);
  if (threadIdx.x == 0) sums[blockIdx.x] = spread;
}

__global__ void store_spread(const Spread* sums, std::int64_t count, float* result) {
  Spread spread{};
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    spread.sum_of_squares += sums[i].sum_of_squares;
    spread.square_of_sum += sums[i].square_of_sum;
  }
  spread = sum_of_block(spread);
  if (threadIdx.x != 0) return;
  result[kSumOfSquares] = static_cast<float>(spread.sum_of_squares);
  result[kSquareOfSum] = static_cast<float>(spread.square_of_sum);
}

}  // namespace

void run_flat(const VectorSpread& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.vectors.empty());
  auto* sums = reinterpret_cast<Spread*>(context.partials);
  const std::int64_t blocks = blocks_for(task.elements);
  with_group(task.vectors, [&]<std::size_t capacity>(const VectorGroup<capacity>& vectors) {
    launch(sum_spreads<capacity>, blocks, context.stream, vectors, task.elements, sums);
  });
  launch(store_spread, 1, context.stream, sums, blocks, task.result);
}

}  // namespace arbalest::engine::cuda
