#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/vector_group.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/elementwise/averaging.h"

namespace arbalest::engine::cuda {

namespace {

// Groups of kWidest elements need an `offset` that is a multiple of kWidest, and an aligned `mean`.
template <int kWidest, std::size_t capacity>
__device__ void average_vectors(const VectorGroup<capacity>& vectors, std::int64_t offset, float* mean,
                                std::int64_t elements, float factor) {
  for_groups<kWidest>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    auto sum = elementwise::pairwise_sum<VectorGroup<capacity>::kLevels>(
        vectors.count, [&](std::int32_t j) { return load_group<kNumbers>(vectors.addresses[j] + offset, group); });
    for (int n = 0; n < kNumbers; ++n) sum.at[n] *= factor;
    store_group(sum, mean, group);
  });
}

}  // namespace

void run_flat(const VectorMean& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.vectors.empty());
  with_group(task.vectors, [&]<std::size_t capacity>(const VectorGroup<capacity>& vectors) {
    const auto run = [&]<int kWidest>(std::integral_constant<int, kWidest>) {
      launch<average_vectors<kWidest, capacity>>(blocks_for_groups<kWidest>(task.elements), context.stream, vectors,
                                                 task.offset, task.mean, task.elements, task.factor);
    };
    const bool is_aligned = task.offset % kWideFloats == 0 && reinterpret_cast<std::uintptr_t>(task.mean) % 16 == 0;
    is_aligned ? run(std::integral_constant<int, kWideFloats>()) : run(std::integral_constant<int, 1>());
  });
}

}  // namespace arbalest::engine::cuda
