#include "dataflow/memory/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "engine/base/alignment.h"

namespace arbalest::dataflow {

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  MemoryPlan plan{std::vector<std::size_t>(lifetimes.size(), 0), 0};
  std::vector<std::size_t> placed;  // by ascending offset
  for (const std::size_t current : order) {
    const Lifetime& lifetime = lifetimes[current];
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      const bool together = lifetimes[other].first <= lifetime.last && lifetime.first <= lifetimes[other].last;
      if (!together) continue;
      if (offset + engine::aligned(lifetime.bytes) <= plan.offsets[other]) break;  // fits into the gap before it
      offset = std::max(offset, plan.offsets[other] + engine::aligned(lifetimes[other].bytes));
    }
    plan.offsets[current] = offset;
    plan.bytes = std::max(plan.bytes, offset + engine::aligned(lifetime.bytes));
    const auto after = std::ranges::find_if(placed, [&](std::size_t other) { return plan.offsets[other] > offset; });
    placed.insert(after, current);
  }
  return plan;
}

}  // namespace arbalest::dataflow
