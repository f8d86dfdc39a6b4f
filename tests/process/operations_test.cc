// Tests the operations on bytes and flags over a simulated network without faults.
#include "engine/process/operations/agree.h"
#include "engine/process/operations/broadcast.h"
#include "engine/process/operations/flag_reduction.h"
#include "engine/process/operations/gather.h"
#include "tests/process/simulated_cluster.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::Agree;
using engine::process::Broadcast;
using engine::process::FlagReduction;
using engine::process::Gather;
using engine::process::Operation;

// Runs one operation on every rank to its end.
void run_operation(int ranks, std::uint64_t seed, const std::function<std::unique_ptr<Operation>(int rank)>& make) {
  SimulatedCluster cluster(ranks, seed, [&](int rank, int step) { return step == 0 ? make(rank) : nullptr; }, {});
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < ranks; ++rank) {
    INFO(cluster.failure(rank).value_or("no failure"));
    CHECK(cluster.is_closed(rank));
  }
}

std::string text_of(int rank, std::size_t bytes) { return std::string(bytes, static_cast<char>('a' + rank)); }

}  // namespace

TEST_CASE("process operations: a broadcast brings the bytes of its root to all ranks") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, std::size_t{5000}}) {
      const int root = static_cast<int>(bytes) % ranks;
      CAPTURE(ranks, bytes, root);
      std::vector<std::string> texts(static_cast<std::size_t>(ranks), "what was there before");
      texts[static_cast<std::size_t>(root)] = text_of(root, bytes);
      run_operation(ranks, bytes,
                    [&](int rank) { return std::make_unique<Broadcast>(texts[static_cast<std::size_t>(rank)], root); });
      for (const std::string& text : texts) CHECK(text == text_of(root, bytes));
    }
  }
}

TEST_CASE("process operations: rank 0 gathers bytes of different lengths") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    CAPTURE(ranks);
    std::vector<std::string> texts;
    for (int rank = 0; rank < ranks; ++rank) texts.push_back(text_of(rank, static_cast<std::size_t>(rank * 40)));
    std::vector<std::vector<std::string>> results(texts.size());
    {
      std::vector<Gather*> gathers(texts.size());
      const auto make = [&](int rank) {
        auto gather = std::make_unique<Gather>(texts[static_cast<std::size_t>(rank)]);
        gathers[static_cast<std::size_t>(rank)] = gather.get();
        return gather;
      };
      SimulatedCluster cluster(
          ranks, 3, [&](int rank, int step) -> std::unique_ptr<Operation> { return step == 0 ? make(rank) : nullptr; },
          {});
      REQUIRE(cluster.run(60.0));
      for (std::size_t rank = 0; rank < texts.size(); ++rank) results[rank] = gathers[rank]->result();
    }
    CHECK(results[0] == texts);
    for (std::size_t rank = 1; rank < texts.size(); ++rank) CHECK(results[rank].empty());
  }
}

TEST_CASE("process operations: all ranks learn which values differ from that of rank 0") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (const std::vector<int>& different :
         {std::vector<int>{}, std::vector<int>{1}, std::vector<int>{1, ranks - 1}}) {
      const std::set<int> expected(different.begin(), different.end());
      std::vector<std::string> values(static_cast<std::size_t>(ranks), "the same job");
      for (const int rank : expected) values[static_cast<std::size_t>(rank)] = "another job";
      std::vector<Agree*> agrees(values.size());
      SimulatedCluster cluster(ranks, 5,
                               [&](int rank, int step) -> std::unique_ptr<Operation> {
                                 if (step > 0) return nullptr;
                                 auto agree = std::make_unique<Agree>(values[static_cast<std::size_t>(rank)]);
                                 agrees[static_cast<std::size_t>(rank)] = agree.get();
                                 return agree;
                               },
                               {});
      REQUIRE(cluster.run(60.0));
      for (const Agree* agree : agrees) {
        CHECK(agree->differing() == std::vector<int>(expected.begin(), expected.end()));
      }
    }
  }
}

TEST_CASE("process operations: every rank gets the flags of all ranks") {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    CAPTURE(ranks);
    std::vector<FlagReduction*> reductions(static_cast<std::size_t>(ranks));
    SimulatedCluster cluster(ranks, 7,
                             [&](int rank, int step) -> std::unique_ptr<Operation> {
                               if (step > 0) return nullptr;
                               auto reduction = std::make_unique<FlagReduction>(std::uint64_t{1} << rank);
                               reductions[static_cast<std::size_t>(rank)] = reduction.get();
                               return reduction;
                             },
                             {});
    REQUIRE(cluster.run(60.0));
    for (const FlagReduction* reduction : reductions) CHECK(reduction->result() == (std::uint64_t{1} << ranks) - 1);
  }
}

TEST_CASE("process operations: no rank leaves a barrier before the last has entered it") {
  constexpr int kRanks = 7;
  constexpr double kLate = 2.0;
  std::vector<FlagReduction*> barriers(kRanks);
  SimulatedCluster cluster(kRanks, 11,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0) return nullptr;
                             auto barrier = std::make_unique<FlagReduction>(0);
                             barriers[static_cast<std::size_t>(rank)] = barrier.get();
                             return barrier;
                           },
                           {});
  cluster.stall(4, kLate);
  CHECK_FALSE(cluster.run(kLate - 0.1));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK((barriers[rank] == nullptr) == (rank == 4));
    if (barriers[rank] != nullptr) CHECK_FALSE(barriers[rank]->done());
  }
  CHECK(cluster.run(60.0));
}

TEST_CASE("process operations: ranks in different operations are noticed and named") {
  std::string text = "bytes";
  SimulatedCluster cluster(2, 13,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0) return nullptr;
                             if (rank == 0) return std::make_unique<Broadcast>(text, 1);
                             return std::make_unique<Gather>(text);
                           },
                           {});
  REQUIRE(cluster.run(60.0));
  REQUIRE(cluster.failure(0));
  CHECK_THAT(*cluster.failure(0), ContainsSubstring("rank 1 on host node-1 is in another operation"));
  REQUIRE(cluster.failure(1));
  CHECK_THAT(*cluster.failure(1), ContainsSubstring("rank 0 on host node-0 has failed"));
}

TEST_CASE("process operations: a rank that ends while another waits for it is named") {
  std::string text;
  SimulatedCluster cluster(3, 17,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0 || rank != 2) return nullptr;
                             return std::make_unique<Broadcast>(text, 1);
                           },
                           {});
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < 3; ++rank) REQUIRE(cluster.failure(rank));
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(*cluster.failure(rank), ContainsSubstring("rank 1 on host node-1 has ended, but rank 2 still waits"));
  }
}

TEST_CASE("process operations: a rank may end long before another one has begun the last operation") {
  constexpr double kLate = 70.0;  // with a timeout of 3 s
  const bool gathers = GENERATE(true, false);
  std::vector<std::string> texts(3, "bytes");
  SimulatedCluster cluster(3, 19,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0) return nullptr;
                             std::string& text = texts[static_cast<std::size_t>(rank)];
                             if (gathers) return std::make_unique<Gather>(text);
                             return std::make_unique<Broadcast>(text, 1);
                           },
                           {.network = {.eager_bytes = 4}});
  cluster.compute(2, kLate);
  CHECK(cluster.run(kLate + 10.0));
  for (int rank = 0; rank < 3; ++rank) {
    INFO(cluster.failure(rank).value_or("no failure"));
    CHECK(cluster.is_closed(rank));
  }
}

}  // namespace arbalest::tests
