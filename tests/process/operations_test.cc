// Tests the operations on bytes and flags over a simulated network without faults.
#include "engine/process/operations/agree.h"
#include "engine/process/operations/all_to_all.h"
#include "engine/process/operations/broadcast.h"
#include "engine/process/operations/flag_reduction.h"
#include "engine/process/operations/gather.h"
#include "tests/process/simulated_cluster.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::Agree;
using engine::process::AllToAll;
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

TEST_CASE("process operations: each rank gets the bytes that each other rank has for it") {
  const auto bytes_of = [](int from, int to) {
    return std::string(static_cast<std::size_t>(3 * from + 70 * to), static_cast<char>('a' + 16 * from + to));
  };
  for (int ranks = 2; ranks <= 8; ++ranks) {
    CAPTURE(ranks);
    std::vector<std::vector<std::string>> sent(static_cast<std::size_t>(ranks));
    std::vector<std::vector<std::string>> received(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      for (int peer = 0; peer < ranks; ++peer) {
        sent[static_cast<std::size_t>(rank)].push_back(bytes_of(rank, peer));
        received[static_cast<std::size_t>(rank)].emplace_back(bytes_of(peer, rank).size(), '-');
      }
    }
    run_operation(ranks, static_cast<std::uint64_t>(ranks), [&](int rank) {
      auto exchange = std::make_unique<AllToAll>(ranks);
      for (int peer = 0; peer < ranks; ++peer) {
        const auto r = static_cast<std::size_t>(rank);
        const auto p = static_cast<std::size_t>(peer);
        exchange->set(peer, std::as_bytes(std::span(sent[r][p])), std::as_writable_bytes(std::span(received[r][p])));
      }
      return exchange;
    });
    for (int rank = 0; rank < ranks; ++rank) {
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank) continue;
        CHECK(received[static_cast<std::size_t>(rank)][static_cast<std::size_t>(peer)] == bytes_of(peer, rank));
      }
    }
  }
}

TEST_CASE("process operations: an exchange takes its pieces in any order, and notices one that is short") {
  const std::size_t size = GENERATE(100, 98);  // of what rank 0 sends
  const std::vector<std::string> sent = {std::string(size, 'a'), std::string(70, 'b')};
  std::vector<std::string> received = {std::string(70, '-'), std::string(100, '-')};
  const auto program = [&](int rank, int step) -> std::unique_ptr<Operation> {
    if (step > 0) return nullptr;
    const auto own = static_cast<std::size_t>(rank);
    auto exchange = std::make_unique<AllToAll>(2, /*piece=*/32);
    exchange->set(1 - rank, std::as_bytes(std::span(sent[own])), std::as_writable_bytes(std::span(received[own])));
    return exchange;
  };
  SimulatedCluster cluster(2, 7, program, {.network = {.reports_newest_first = true}});
  cluster.compute(1, 1.0);  // by then all pieces are there, and end at once
  REQUIRE(cluster.run(60.0));
  if (size == 100) {
    CHECK(cluster.is_closed(0));
    CHECK(cluster.is_closed(1));
    CHECK(received == std::vector{sent[1], sent[0]});
  } else {
    CHECK_THAT(cluster.failure(1).value_or(""), ContainsSubstring("exchange tensors of different sizes"));
  }
}

TEST_CASE("process operations: ranks that exchange tensors of different sizes are told so") {
  const std::vector<std::string> sent = {std::string(100, 'a'), std::string(90, 'b')};
  std::vector<std::string> received(2, std::string(120, '-'));
  const auto program = [&](int rank, int step) -> std::unique_ptr<Operation> {
    if (step > 0) return nullptr;
    const auto own = static_cast<std::size_t>(rank);
    auto exchange = std::make_unique<AllToAll>(2);
    exchange->set(1 - rank, std::as_bytes(std::span(sent[own])), std::as_writable_bytes(std::span(received[own])));
    return exchange;
  };
  SimulatedCluster cluster(2, 7, program, {});
  CHECK(cluster.run(60.0));
  const std::string all = cluster.failure(0).value_or("") + cluster.failure(1).value_or("");
  CHECK_THAT(all, ContainsSubstring("exchange tensors of different sizes"));
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
