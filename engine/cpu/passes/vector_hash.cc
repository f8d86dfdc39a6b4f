#include "engine/passes/vector_hash.h"

#include <array>

#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/hash.h"

namespace arbalest::engine::cpu {

void run_flat(const VectorHash& task, const TaskContext& context) {
  constexpr std::int64_t kChunks = 64;
  std::array<std::uint64_t, kChunks> sums{};
  const std::int64_t chunk = (task.elements + kChunks - 1) / kChunks;
  for_each_part(context.threads, kChunks, [&](std::int64_t part) {
    const std::int64_t end = std::min(task.elements, (part + 1) * chunk);
    std::uint64_t sum = 0;
    for (std::int64_t i = part * chunk; i < end; ++i) sum += elementwise::hashed(task.values[i], i);
    sums[static_cast<std::size_t>(part)] = sum;
  });
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  *task.hash = total;
}

}  // namespace arbalest::engine::cpu
