// Tests two things that go on beside the rounds of a job, in the simulated cluster: ranks send learners to rank 0 for a
// checkpoint, and flags return some iterations later, as the tuner's do.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/process/operations/direct.h"
#include "engine/process/operations/flag_reduction.h"
#include "tests/process/simulated_cluster.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"

namespace arbalest::tests {
namespace {

using engine::process::DirectReceive;
using engine::process::DirectSend;
using engine::process::FlagReduction;
using engine::process::Operation;

constexpr unsigned kSeeds = kSanitized ? 20 : 200;

// All ranks reduce flags in the even steps. In the odd ones each rank sends pieces to rank 0, which takes those of one
// rank after the other.
class Senders {
 public:
  Senders(int ranks, int pieces, unsigned seed, int flags = 20)
      : ranks_(ranks), pieces_(pieces), flags_(flags), received_(received_count()) {
    std::mt19937 generator(seed);
    for (int i = 0; i < received_count(); ++i) {
      payloads_.emplace_back(generator() % 3 == 0 ? 0 : generator() % 5000, static_cast<char>('a' + i % 26));
    }
  }

  std::unique_ptr<Operation> operator()(int rank, int step) {
    if (step % 2 == 0) return step < 2 * flags_ ? std::make_unique<FlagReduction>(0) : nullptr;
    const int piece = step / 2;
    if (rank > 0) {
      if (piece >= pieces_) return nullptr;
      return std::make_unique<DirectSend>(payloads_[static_cast<std::size_t>((rank - 1) * pieces_ + piece)], 0);
    }
    if (piece >= received_count()) return nullptr;
    auto receive = std::make_unique<DirectReceive>(1 + piece / pieces_);
    received_[static_cast<std::size_t>(piece)] = receive.get();
    return receive;
  }

  // Whether rank 0 has got every piece in its place.
  bool all_arrived() {
    for (std::size_t i = 0; i < received_.size(); ++i) {
      if (received_[i] == nullptr || !received_[i]->done() || received_[i]->result() != payloads_[i]) return false;
    }
    return true;
  }

 private:
  int received_count() const { return (ranks_ - 1) * pieces_; }

  const int ranks_;
  const int pieces_;
  const int flags_;
  std::vector<std::string> payloads_;     // by rank, from rank 1 on, then by piece
  std::vector<DirectReceive*> received_;  // in the same order
};

}  // namespace

TEST_CASE("simulated cluster: ranks send their files to rank 0 beside the rounds") {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const int ranks = 2 + static_cast<int>(seed % 7);
    Senders senders(ranks, 1 + static_cast<int>(seed % 4), seed);
    SimulatedCluster cluster(ranks, seed, std::ref(senders),
                             {.depth = 2,
                              .pause_seconds = 0.002 * (seed % 3),
                              .has_random_pauses = true,
                              .network = {.eager_bytes = seed % 2 == 0 ? 0U : 64U}});
    REQUIRE(cluster.run(1e3));
    for (int rank = 0; rank < ranks; ++rank) CHECK(cluster.is_closed(rank));
    CHECK(senders.all_arrived());
  }
}

// Rank 0 may first have much to write, and a rank much to copy. Only a dead one is named.
TEST_CASE("simulated cluster: nobody is blamed who is late for a file, but a sender that dies is named") {
  const int late = GENERATE(0, 2);
  const bool dies = GENERATE(false, true);
  CAPTURE(late, dies);
  Senders senders(4, 2, 5, /*flags=*/200);
  SimulatedCluster cluster(
      4, 5, std::ref(senders),
      {.peer_timeout_seconds = 3.0, .operation_timeout_seconds = 10.0, .depth = 2, .pause_seconds = 0.5});
  cluster.compute(late, 50.0, /*stream=*/1);
  if (dies) cluster.network().at(20.0, [&] { cluster.network().kill(late); });
  CHECK_FALSE(cluster.run(19.0));
  REQUIRE(cluster.run(200.0));
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(cluster.is_closed(rank) != dies);
    if (!dies || rank == late) continue;
    CHECK_THAT(cluster.failure(rank).value_or(""),
               ContainsSubstring(fmt::format("rank {0} on host node-{0} is dead", late)));
  }
  CHECK(senders.all_arrived() != dies);
}

// The thread that takes files waits for another rank, but the rank itself has come to a stop.
TEST_CASE("simulated cluster: a rank that hangs is named, though it waits for a file") {
  Senders senders(4, 2, 5, /*flags=*/200);
  SimulatedCluster cluster(
      4, 5, std::ref(senders),
      {.peer_timeout_seconds = 3.0, .operation_timeout_seconds = 10.0, .depth = 2, .pause_seconds = 0.5});
  cluster.compute(1, 1e5, /*stream=*/1);
  cluster.network().at(5.0, [&] { cluster.compute(0, 1e5, /*stream=*/0); });
  REQUIRE(cluster.run(30.0));
  for (int rank = 0; rank < 4; ++rank) {
    CHECK_THAT(cluster.failure(rank).value_or(""), ContainsSubstring("rank 0 on host node-0 hangs"));
  }
}

// A decision of the tuner takes three rounds of flags: rank 0 has chosen, all have prepared, some lack memory.
TEST_CASE("simulated cluster: all ranks get the same flags at the same iteration, however late they give theirs") {
  constexpr int kIterations = kSanitized ? 12 : 60;  // a sanitizer takes minutes for more
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const int ranks = 2 + static_cast<int>(seed % 15);
    std::mt19937 generator(seed);
    std::vector<std::vector<std::uint64_t>> given(kIterations,
                                                  std::vector<std::uint64_t>(static_cast<std::size_t>(ranks)));
    std::vector<std::uint64_t> expected(kIterations);
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      for (std::uint64_t& flags : given[static_cast<std::size_t>(iteration)]) {
        if (generator() % 4 == 0) flags = std::uint64_t{1} << generator() % 64;
        expected[static_cast<std::size_t>(iteration)] |= flags;
      }
    }
    std::vector<std::vector<const FlagReduction*>> reductions(static_cast<std::size_t>(ranks));
    SimulatedCluster cluster(ranks, seed,
                             [&](int rank, int step) -> std::unique_ptr<Operation> {
                               if (step >= kIterations) return nullptr;
                               const auto i = static_cast<std::size_t>(rank);
                               auto made = std::make_unique<FlagReduction>(given[static_cast<std::size_t>(step)][i]);
                               reductions[i].resize(kIterations);
                               reductions[i][static_cast<std::size_t>(step)] = made.get();
                               return made;
                             },
                             {.depth = 3, .pause_seconds = 0.003, .has_random_pauses = true});
    cluster.compute(static_cast<int>(seed) % ranks, 1.0);
    REQUIRE(cluster.run(1e3));
    for (int rank = 0; rank < ranks; ++rank) {
      REQUIRE(cluster.is_closed(rank));
      std::vector<std::uint64_t> got;
      for (const FlagReduction* reduction : reductions[static_cast<std::size_t>(rank)])
        got.push_back(reduction->result());
      CHECK(got == expected);
    }
  }
}

// Under asynchronous SGD a fast rank has begun the flags of many iterations that a slow rank has yet to end.
TEST_CASE("simulated cluster: a slow rank does not hang while it ends the iterations that others have ended") {
  constexpr int kIterations = 18;
  constexpr int kSlow = 1;
  constexpr double kIteration = 5.0;  // seconds of the slow rank
  const bool stops = GENERATE(false, true);
  const int last = GENERATE(18, 10);  // iterations before the slow rank hangs
  CAPTURE(stops, last);
  SimulatedCluster cluster(3, 7,
                           [](int, int step) -> std::unique_ptr<Operation> {
                             return step < kIterations ? std::make_unique<FlagReduction>(0) : nullptr;
                           },
                           {.peer_timeout_seconds = 3.0, .operation_timeout_seconds = 30.0, .depth = kIterations});
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    cluster.compute(kSlow, iteration < last ? kIteration * (iteration + 1) : 1e5, iteration);
  }
  if (stops) cluster.network().at(12.0, [&] { cluster.request_stop(0); });
  const double before = kIteration * last + (stops ? 5.5 : 29.5);  // the slow rank may be as late
  CHECK_FALSE(cluster.run(std::min(before, kIteration * kIterations - 1.0)));
  REQUIRE(cluster.run(kIteration * kIterations + 40.0));
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(cluster.is_closed(rank) == (last == kIterations));
    if (last == kIterations) continue;
    CHECK(cluster.end_time(rank) < before + 5.0);
    CHECK_THAT(cluster.failure(rank).value_or(""),
               ContainsSubstring(fmt::format("rank {0} on host node-{0} hangs", kSlow)));
  }
}

}  // namespace arbalest::tests
