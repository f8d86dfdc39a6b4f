#include "engine/passes/vector_variance.h"

#include <array>

#include "engine/base/error.h"
#include "engine/cpu/passes/pairwise_blocks.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// The chunks do not depend on the number of threads, so that sums are added in one order.
constexpr std::int64_t kChunks = 64;
constexpr std::int64_t kLanes = 16;

double squared_norm(const float* __restrict values, std::int64_t count) {
  std::array<float, kLanes> lanes{};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] += values[i + lane] * values[i + lane];
    }
  }
  double sum = 0.0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  for (std::int64_t i = whole; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace

void run_flat(const VectorVariance& task, const TaskContext& context) {
  ARBALEST_CHECK(!task.vectors.empty());
  std::array<std::array<double, kVectorVarianceResults>, kChunks> sums{};
  const std::int64_t chunk = (task.elements + kChunks - 1) / kChunks;
  for_each_part(context.threads, kChunks, [&](std::int64_t part) {
    auto& of_chunk = sums[static_cast<std::size_t>(part)];
    const std::int64_t end = std::min(task.elements, (part + 1) * chunk);
    for (std::int64_t begin = part * chunk; begin < end; begin += kPairwiseBlock) {
      const std::int64_t count = std::min(kPairwiseBlock, end - begin);
      alignas(64) float sum[kPairwiseBlock];
      sum_vectors(task.vectors, begin, count, sum);
      for (const float* vector : task.vectors) of_chunk[kSumOfSquares] += squared_norm(vector + begin, count);
      of_chunk[kSquareOfSum] += squared_norm(sum, count);
    }
  });
  std::array<double, kVectorVarianceResults> total{};
  for (const auto& of_chunk : sums) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += of_chunk[i];
  }
  for (std::size_t i = 0; i < total.size(); ++i) task.result[i] = static_cast<float>(total[i]);
}

}  // namespace arbalest::engine::cpu
