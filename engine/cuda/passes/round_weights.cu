#include "engine/passes/round_weights.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"

namespace arbalest::engine {

template <typename Visitor>
__host__ __device__ constexpr void visit_addresses(RoundWeights& of, Visitor&& visit) {
  visit(of.weights);
  visit(of.rounded);
}

}  // namespace arbalest::engine

namespace arbalest::engine::cuda {

namespace {

__device__ void round_elements(const RoundWeights task) {
  for_groups<kWideFloats>(task.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    store_group(load_group<kNumbers>(task.weights, group), task.rounded, group);
  });
}

}  // namespace

void run_flat(const RoundWeights& task, const StreamContext& context) {
  launch<round_elements>(blocks_for_groups<kWideFloats>(task.elements), context.stream, task);
}

}  // namespace arbalest::engine::cuda
