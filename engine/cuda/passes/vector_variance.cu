#include "engine/passes/vector_variance.h"

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/last_block.h"
#include "engine/cuda/kernels/vector_group.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/elementwise/averaging.h"

namespace arbalest::engine::cuda {

namespace {

struct Spread {
  double sum_of_squares;
  double square_of_sum;
};
static_assert(sizeof(Spread) * kMaxBlocks <= sizeof(float) * kPartials);

// All threads of the block must call this.
__device__ Spread sum_of_block(const Spread& of_thread) {
  return {block_sum(of_thread.sum_of_squares), block_sum(of_thread.square_of_sum)};
}

template <std::size_t capacity>
__device__ void find_spread(const VectorGroup<capacity>& vectors, std::int64_t elements, Spread* sums,
                            unsigned* arrivals, float* result) {
  Spread spread{};
  for_groups<kWideFloats>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    Floats<kNumbers> squares{};
    const auto sum = elementwise::pairwise_sum<VectorGroup<capacity>::kLevels>(vectors.count, [&](std::int32_t j) {
      const Floats<kNumbers> values = load_group<kNumbers>(vectors.addresses[j], group);
      for (int n = 0; n < kNumbers; ++n) squares.at[n] += values.at[n] * values.at[n];
      return values;
    });
    for (int n = 0; n < kNumbers; ++n) {
      spread.sum_of_squares += static_cast<double>(squares.at[n]);
      spread.square_of_sum += static_cast<double>(sum.at[n]) * static_cast<double>(sum.at[n]);
    }
  });
  spread = sum_of_block(spread);
  if (threadIdx.x == 0) sums[blockIdx.x] = spread;
  if (!is_last_block(arrivals, gridDim.x)) return;
  spread = Spread{};
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) {
    const volatile Spread& found = sums[block];
    spread.sum_of_squares += found.sum_of_squares;
    spread.square_of_sum += found.square_of_sum;
  }
  spread = sum_of_block(spread);
  if (threadIdx.x != 0) return;
  result[kSumOfSquares] = static_cast<float>(spread.sum_of_squares);
  result[kSquareOfSum] = static_cast<float>(spread.square_of_sum);
}

}  // namespace

void run_flat(const VectorVariance& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.vectors.empty());
  with_group(task.vectors, [&]<std::size_t capacity>(const VectorGroup<capacity>& vectors) {
    launch<find_spread<capacity>>(blocks_for_groups<kWideFloats>(task.elements), context.stream, vectors, task.elements,
                                  reinterpret_cast<Spread*>(context.partials), context.arrivals, task.result);
  });
}

}  // namespace arbalest::engine::cuda
