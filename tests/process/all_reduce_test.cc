// Tests the all-reduce between processes over a simulated network without faults.
#include "engine/process/operations/all_reduce.h"

#include "engine/process/operations/library_all_reduce.h"
#include "tests/process/simulated_cluster.h"
#include "tests/process/vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::AllReduce;
using engine::process::AllReduceOptions;
using engine::process::LibraryAllReduce;
using engine::process::Operation;
using engine::process::Slices;

std::vector<std::vector<float>> reduce(const std::vector<std::vector<float>>& addends, std::uint64_t seed,
                                       const AllReduceOptions& options) {
  std::vector<std::vector<float>> values = addends;
  const auto ranks = static_cast<int>(values.size());
  SimulatedCluster cluster(ranks, seed,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0) return nullptr;
                             return std::make_unique<AllReduce>(values[static_cast<std::size_t>(rank)], rank, ranks,
                                                                options);
                           },
                           {});
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < ranks; ++rank) {
    INFO(cluster.failure(rank).value_or("no failure"));
    REQUIRE(cluster.is_closed(rank));
  }
  return values;
}

}  // namespace

TEST_CASE("process all-reduce: the slices cover every element once, for every length") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const std::size_t elements : {0U, 1U, 15U, 16U, 17U, 100U, 1000U, 4097U}) {
      const Slices slices(elements, ranks, 24);
      std::size_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        CHECK(slices.begin(rank) == next);
        CHECK(slices.size(rank) * static_cast<std::size_t>(ranks) <= elements + 32 * static_cast<std::size_t>(ranks));
        for (std::size_t chunk = 0; chunk < slices.chunks(rank); ++chunk) {
          CHECK(slices.chunk_begin(rank, chunk) == next);
          CHECK(slices.chunk_size(rank, chunk) >= 1);
          CHECK(slices.chunk_size(rank, chunk) <= 24);
          next += slices.chunk_size(rank, chunk);
        }
        CHECK(slices.begin(rank + 1) == next);
      }
      CHECK(next == elements);
    }
  }
}

TEST_CASE("process all-reduce: every rank gets the sum in the order of the tree, whatever the length and the chunks") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (const std::size_t elements : {1U, 40U, 1000U, 5003U}) {
      const Addends addends(ranks, elements, static_cast<unsigned>(ranks));
      for (const AllReduceOptions options : {AllReduceOptions{.chunk = 16, .window = 3},
                                             AllReduceOptions{.chunk = 100, .window = 1}, AllReduceOptions{}}) {
        if (elements / options.chunk > 100 && ranks > 5) continue;  // the same again, for longer
        CAPTURE(ranks, elements, options.chunk, options.window);
        for (const std::vector<float>& values : reduce(addends.of_rank, elements, options)) {
          CHECK(values == addends.sum);
        }
      }
    }
  }
}

TEST_CASE("process all-reduce: another order of additions would give other bits") {
  const Addends addends(5, 1000, 1);
  std::vector<float> in_order = addends.of_rank[0];
  for (std::size_t rank = 1; rank < 5; ++rank) {
    for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i] += addends.of_rank[rank][i];
  }
  CHECK(in_order != addends.sum);
}

TEST_CASE("process all-reduce: it can be started again") {
  constexpr int kRanks = 3;
  constexpr int kRounds = 4;
  const Addends addends(kRanks, 500, 2);
  std::vector<std::vector<float>> values(kRanks, std::vector<float>(500));
  std::vector<std::unique_ptr<AllReduce>> operations;
  for (int rank = 0; rank < kRanks; ++rank) {
    operations.push_back(std::make_unique<AllReduce>(values[static_cast<std::size_t>(rank)], rank, kRanks,
                                                     AllReduceOptions{.chunk = 32, .window = 2}));
  }
  SimulatedNetwork network(kRanks, 3);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      values[rank] = addends.of_rank[(rank + static_cast<std::size_t>(round)) % kRanks];
      operations[rank]->start(network.transport(static_cast<int>(rank)),
                              engine::process::all_reduce_channel(static_cast<std::uint64_t>(round)));
    }
    const auto all_done = [&] { return std::ranges::all_of(operations, [](const auto& of) { return of->done(); }); };
    while (!all_done()) {
      for (int rank = 0; rank < kRanks; ++rank) network.transport(rank).poll();
      if (!network.step(1000.0)) break;
    }
    CHECK(all_done());
    std::vector<std::vector<float>> rotated(kRanks);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      rotated[rank] = addends.of_rank[(rank + static_cast<std::size_t>(round)) % kRanks];
    }
    for (std::size_t i = 0; i < 500; ++i) {
      const std::array<float, kRanks> column{rotated[0][i], rotated[1][i], rotated[2][i]};
      const float sum = sum_by_tree(column);
      for (const std::vector<float>& of_rank : values) CHECK(of_rank[i] == sum);
    }
  }
}

TEST_CASE("process all-reduce: the library's sums start in the same order on all ranks, whatever the streams do") {
  constexpr int kRanks = 4;
  constexpr int kSums = 24;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    std::vector<Addends> addends;
    std::vector<std::vector<std::vector<float>>> values;  // [sum][rank]
    for (unsigned sum = 0; sum < kSums; ++sum) {
      addends.emplace_back(kRanks, 10, sum);
      values.push_back(addends.back().of_rank);
    }
    SimulatedCluster cluster(kRanks, seed,
                             [&](int rank, int step) -> std::unique_ptr<Operation> {
                               if (step >= kSums) return nullptr;
                               std::vector<float>& own =
                                   values[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)];
                               // Only the library needs the order.
                               if (step % 3 == 0) return std::make_unique<AllReduce>(own, rank, kRanks);
                               return std::make_unique<LibraryAllReduce>(own);
                             },
                             {.depth = 4, .pause_seconds = 0.005, .has_random_pauses = true});
    REQUIRE(cluster.run(60.0));
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      for (const std::vector<float>& of_rank : values[sum]) CHECK(of_rank == addends[sum].sum);
    }
  }
}

TEST_CASE("process all-reduce: with many ranks the chunks are shorter, and the received parts stay below a limit") {
  for (const int ranks : {2, 16, 17, 64, 256, 1000}) {
    CAPTURE(ranks);
    const AllReduceOptions options;
    const std::size_t chunk = engine::process::chunk_for(ranks, options);
    CHECK(chunk <= options.chunk);
    CHECK(chunk >= engine::process::kShortestChunk);
    CHECK(static_cast<std::size_t>(ranks - 1) * options.window * chunk <= engine::process::kMostReceived);
  }
  CHECK(engine::process::chunk_for(16, {}) == AllReduceOptions{}.chunk);
  CHECK(engine::process::chunk_for(64, {}) < AllReduceOptions{}.chunk);
  CHECK(engine::process::chunk_for(64, {.chunk = 16}) == 16);
}

}  // namespace arbalest::tests
