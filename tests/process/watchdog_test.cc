// What the watchdog says, and when it keeps quiet.
#include "engine/process/watchdog.h"

#include "engine/process/operations/flag_reduction.h"
#include "tests/process/simulated_cluster.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::FlagReduction;
using engine::process::Operation;
using engine::process::Phase;

constexpr double kTimeout = 6.0;

// Ranks that meet at a barrier every 50 ms.
SimulatedCluster barriers(int ranks, int count) {
  return {ranks,
          1,
          [count](int, int step) -> std::unique_ptr<Operation> {
            return step < count ? std::make_unique<FlagReduction>(0) : nullptr;
          },
          {.peer_timeout_seconds = kTimeout, .depth = 1, .pause_seconds = 0.05}};
}

}  // namespace

TEST_CASE("watchdog: a dead rank is named with its host, its last round and phase") {
  SimulatedCluster cluster = barriers(5, 1000);
  cluster.set_position(3, {.round = 17, .phase = Phase::kEvaluation});
  cluster.network().at(2.0, [&] { cluster.network().kill(3); });
  REQUIRE(cluster.run(60.0));
  for (const int rank : {0, 1, 2, 4}) {
    REQUIRE(cluster.failure(rank));
    CHECK_THAT(*cluster.failure(rank), ContainsSubstring("rank 3 on host node-3 is dead, stopped or cut off"));
    CHECK_THAT(*cluster.failure(rank), ContainsSubstring("Its last heartbeat came from round 17 (evaluation)"));
  }
}

TEST_CASE("watchdog: the death of rank 0 is noticed by the rank after it") {
  SimulatedCluster cluster = barriers(6, 1000);
  cluster.network().at(1.0, [&] { cluster.network().kill(0); });
  REQUIRE(cluster.run(60.0));
  for (int rank = 1; rank < 6; ++rank) {
    REQUIRE(cluster.failure(rank));
    CHECK_THAT(*cluster.failure(rank), ContainsSubstring("rank 0 on host node-0"));
  }
}

TEST_CASE("watchdog: a rank that is silent for some time causes a warning, and the run goes on") {
  SimulatedCluster cluster = barriers(4, 20);
  cluster.network().at(0.5, [&] { cluster.stall(2, 0.6 * kTimeout); });
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < 4; ++rank) CHECK(cluster.is_closed(rank));
  REQUIRE(cluster.warnings().size() == 2);  // from rank 0 and rank 3
  for (const std::string& warning : cluster.warnings()) {
    CHECK_THAT(warning, ContainsSubstring("rank 2 on host node-2 has been silent for"));
  }
}

TEST_CASE("watchdog: heartbeats go on while a rank computes for a long time") {
  SimulatedCluster cluster(2, 1,
                           [](int, int step) -> std::unique_ptr<Operation> {
                             return step < 3 ? std::make_unique<FlagReduction>(0) : nullptr;
                           },
                           {.peer_timeout_seconds = kTimeout, .depth = 1, .pause_seconds = 20.0 * kTimeout});
  REQUIRE(cluster.run(10000.0));
  CHECK(cluster.is_closed(0));
  CHECK(cluster.is_closed(1));
  CHECK(cluster.warnings().empty());
}

TEST_CASE("watchdog: processes that were all stopped at the same time do not blame each other") {
  SimulatedCluster cluster = barriers(2, 20);
  cluster.network().at(0.5, [&] {
    cluster.stall(0, 3.0 * kTimeout);
    cluster.stall(1, 3.0 * kTimeout);
  });
  REQUIRE(cluster.run(60.0));
  CHECK(cluster.is_closed(0));
  CHECK(cluster.is_closed(1));
}

TEST_CASE("watchdog: a connection that is cut between two ranks ends the run everywhere") {
  SimulatedCluster cluster = barriers(4, 1000);
  cluster.network().at(1.0, [&] { cluster.network().cut(0, 2); });
  REQUIRE(cluster.run(60.0));
  for (const int rank : {0, 1, 3}) {
    REQUIRE(cluster.failure(rank));
    CHECK_THAT(*cluster.failure(rank), ContainsSubstring("rank 2 on host node-2 is dead, stopped or cut off"));
  }
  // Rank 1 or 3 has told it.
  REQUIRE(cluster.failure(2));
  CHECK_THAT(*cluster.failure(2),
             ContainsSubstring("the other processes count this one (rank 2 on host node-2) as dead"));
}

}  // namespace arbalest::tests
