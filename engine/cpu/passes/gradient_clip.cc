#include "engine/elementwise/gradient_clip.h"

#include <algorithm>
#include <array>

#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// Number of chunks of a vector; it does not depend on the number of threads, so that sums are added in one order.
constexpr std::int64_t kChunks = 64;
constexpr std::int64_t kLanes = 8;

double sum_of_squares(const float* __restrict values, std::int64_t count) {
  double lanes[kLanes] = {};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  for (std::int64_t i = whole; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace

void run_flat(const GradientClip& task, const TaskContext& context) {
  std::array<double, kChunks> sums{};
  const std::int64_t chunk = ((task.elements + kChunks - 1) / kChunks + kLanes - 1) / kLanes * kLanes;
  for_each_part(context.threads, kChunks, [&](std::int64_t i) {
    const std::int64_t begin = std::min(task.elements, i * chunk);
    const std::int64_t end = std::min(task.elements, begin + chunk);
    sums[static_cast<std::size_t>(i)] = sum_of_squares(task.gradient + begin, end - begin);
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  *task.scale = elementwise::clip_scale(total, task.max_norm);
}

}  // namespace arbalest::engine::cpu
