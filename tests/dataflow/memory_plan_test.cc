// Tests properties that hold for every memory plan.
#include "dataflow/memory/memory_plan.h"

#include "dataflow/input/batches/random_sequence.h"
#include "tests/support/catch.h"

namespace {

using arbalest::dataflow::Lifetime;
using arbalest::dataflow::MemoryPlan;
using arbalest::dataflow::plan_memory;

void check_no_overlap(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan) {
  for (std::size_t a = 0; a < lifetimes.size(); ++a) {
    CHECK(plan.offsets[a] % 64 == 0);
    CHECK(plan.offsets[a] + lifetimes[a].bytes <= plan.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      const bool together = lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last;
      const bool apart = plan.offsets[a] + lifetimes[a].bytes <= plan.offsets[b] ||
                         plan.offsets[b] + lifetimes[b].bytes <= plan.offsets[a];
      CHECK((!together || apart));
    }
  }
}

}  // namespace

TEST_CASE("buffers with disjoint lifetimes share memory") {
  const std::vector<Lifetime> lifetimes{{1000, 0, 1}, {640, 1, 2}, {1000, 2, 3}};
  const MemoryPlan plan = plan_memory(lifetimes);
  check_no_overlap(lifetimes, plan);
  CHECK(plan.bytes == 1024 + 640);
  CHECK(plan.offsets[0] == plan.offsets[2]);
}

TEST_CASE("a plan without buffers, or with empty ones, needs no memory") {
  CHECK(plan_memory({}).bytes == 0);
  const std::vector<Lifetime> empty{{0, 0, 5}, {0, 0, 5}};
  CHECK(plan_memory(empty).bytes == 0);
}

TEST_CASE("live buffers never overlap and never need more memory than without reuse") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    arbalest::dataflow::RandomSequence random(seed, 4, 0);
    std::vector<Lifetime> lifetimes;
    std::size_t without_reuse = 0;
    std::vector<std::size_t> live(40, 0);
    for (std::uint64_t i = 0; i < 1 + random.below(30); ++i) {
      const int first = static_cast<int>(random.below(30));
      const int last = first + static_cast<int>(random.below(10));
      lifetimes.push_back({static_cast<std::size_t>(64 * random.below(50)), first, last});
      without_reuse += lifetimes.back().bytes;
      for (int t = first; t <= last; ++t) live[static_cast<std::size_t>(t)] += lifetimes.back().bytes;
    }
    const MemoryPlan plan = plan_memory(lifetimes);
    CAPTURE(seed);
    check_no_overlap(lifetimes, plan);
    CHECK(plan.bytes <= without_reuse);
    CHECK(plan.bytes >= *std::max_element(live.begin(), live.end()));
  }
}
