// Tests what the watchdog says, and when it keeps quiet.
#include "engine/process/watchdog.h"

#include <fmt/format.h>

#include "engine/process/awake_clock.h"
#include "engine/process/operations/agree.h"
#include "engine/process/operations/all_reduce.h"
#include "engine/process/operations/broadcast.h"
#include "engine/process/operations/flag_reduction.h"
#include "engine/process/operations/gather.h"
#include "tests/process/simulated_cluster.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::process::Agree;
using engine::process::AllReduce;
using engine::process::AllReduceOptions;
using engine::process::Broadcast;
using engine::process::FlagReduction;
using engine::process::Gather;
using engine::process::Operation;
using engine::process::Phase;

constexpr double kTimeout = 6.0;

// Returns ranks that meet at a barrier every 50 ms.
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

TEST_CASE("watchdog: a connection that is cut between two ranks that do not watch each other ends the run") {
  constexpr int kRanks = 8;
  std::vector<std::vector<float>> values(kRanks, std::vector<float>(1000));
  SimulatedCluster cluster(kRanks, 1,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 1000) return nullptr;
                             return std::make_unique<AllReduce>(values[static_cast<std::size_t>(rank)], rank, kRanks);
                           },
                           {.peer_timeout_seconds = kTimeout, .depth = 1, .pause_seconds = 0.05});
  cluster.network().at(1.0, [&] { cluster.network().cut(2, 5); });
  REQUIRE(cluster.run(1.0 + 3.0 * kTimeout));
  for (int rank = 0; rank < kRanks; ++rank) {
    REQUIRE(cluster.failure(rank));
    INFO(*cluster.failure(rank));
    const bool blames_2 = cluster.failure(rank)->find("rank 2 on host node-2") != std::string::npos;
    const bool blames_5 = cluster.failure(rank)->find("rank 5 on host node-5") != std::string::npos;
    CHECK(blames_2 != blames_5);
  }
}

TEST_CASE("watchdog: a connection that is cut at the very end ends the run") {
  SimulatedCluster cluster = barriers(8, 1);
  cluster.compute(3, 1.0);  // the others wait for it at the end
  cluster.network().at(0.9, [&] { cluster.network().cut(2, 5); });
  REQUIRE(cluster.run(1.0 + 3.0 * kTimeout));
  for (int rank = 0; rank < 8; ++rank) {
    REQUIRE(cluster.failure(rank));
    INFO(*cluster.failure(rank));
    const bool blames_2 = cluster.failure(rank)->find("rank 2 on host node-2") != std::string::npos;
    const bool blames_5 = cluster.failure(rank)->find("rank 5 on host node-5") != std::string::npos;
    CHECK(blames_2 != blames_5);
  }
}

TEST_CASE("watchdog: an error of a connection blames the rank at its other end, not the one that gets the error") {
  SimulatedCluster cluster(
      4, 1,
      [](int, int step) -> std::unique_ptr<Operation> {
        return step < 1000 ? std::make_unique<FlagReduction>(0) : nullptr;
      },
      {.peer_timeout_seconds = 100.0, .depth = 1, .pause_seconds = 0.05, .network = {.reports_dead = true}});
  cluster.network().at(1.0, [&] { cluster.network().kill(2); });
  REQUIRE(cluster.run(5.0));
  for (const int rank : {0, 1, 3}) {
    REQUIRE(cluster.failure(rank));
    CHECK_THAT(*cluster.failure(rank),
               Catch::Matchers::StartsWith("rank 2 on host node-2 is dead or cut off: its connection with rank"));
  }
}

TEST_CASE("watchdog: the time in which a process is stopped does not count") {
  engine::process::AwakeClock clock(100.0);
  for (const double now : {100.4, 100.9, 101.5}) clock.advance(now);
  CHECK(clock.seconds() == Approx(1.5));
  clock.advance(5000.0);
  CHECK(clock.seconds() == Approx(1.5 + engine::process::kLongestPause));
}

TEST_CASE("watchdog: a rank that hangs but sends heartbeats is named, and ranks that wait for it are not") {
  constexpr double kOperationTimeout = 100.0;
  const int kind = GENERATE(0, 1, 2, 3, 4);
  const int hanging = GENERATE(0, 3, 4);
  constexpr int kRanks = 5;
  const std::size_t elements = kind == 0 ? 1000 : 1;
  std::vector<std::vector<float>> values(kRanks, std::vector<float>(elements));
  std::vector<std::string> texts(kRanks, "bytes");
  SimulatedCluster cluster(
      kRanks, 1,
      [&](int rank, int step) -> std::unique_ptr<Operation> {
        const auto i = static_cast<std::size_t>(rank);
        if (step > 1) return nullptr;
        if (step == 1 || kind == 2) return std::make_unique<FlagReduction>(0);  // waits where the first does not
        if (kind == 3) return std::make_unique<Broadcast>(texts[i], 0);
        if (kind == 4) return std::make_unique<Agree>(texts[i]);
        return std::make_unique<AllReduce>(values[i], rank, kRanks, AllReduceOptions{.chunk = 16, .window = 2});
      },
      {.peer_timeout_seconds = kTimeout, .operation_timeout_seconds = kOperationTimeout, .depth = 1});
  cluster.compute(hanging, 1e4);
  CHECK_FALSE(cluster.run(kOperationTimeout - 1.0));
  for (int rank = 0; rank < kRanks; ++rank) CHECK_FALSE(cluster.failure(rank));
  REQUIRE(cluster.run(kOperationTimeout + kTimeout));
  for (int rank = 0; rank < kRanks; ++rank) {
    REQUIRE(cluster.failure(rank));
    CHECK_THAT(*cluster.failure(rank),
               Catch::Matchers::StartsWith(fmt::format("rank {0} on host node-{0} hangs", hanging)));
  }
}

// Rank 0 gathers what rank 2 writes for a long time. Rank 1 has given its part, and waits for rank 0 in the next step.
TEST_CASE("watchdog: a rank that works on files keeps the others waiting, and none of them is blamed") {
  constexpr double kOperationTimeout = 100.0;
  constexpr double kWork = 12.0 * kOperationTimeout;
  const bool hangs_then = GENERATE(false, true);
  const bool sums_then = GENERATE(false, true);
  CAPTURE(hangs_then, sums_then);
  std::vector<std::vector<float>> values(3, std::vector<float>(10));
  SimulatedCluster cluster(
      3, 1,
      [&](int rank, int step) -> std::unique_ptr<Operation> {
        if (step == 0) return std::make_unique<Gather>("part");
        if (step == 1 && sums_then) return std::make_unique<AllReduce>(values[static_cast<std::size_t>(rank)], rank, 3);
        return step < 3 ? std::make_unique<FlagReduction>(0) : nullptr;
      },
      {.peer_timeout_seconds = kTimeout, .operation_timeout_seconds = kOperationTimeout, .depth = 1});
  cluster.set_working(2, true);
  cluster.compute(2, hangs_then ? 1e5 : kWork);
  cluster.network().at(kWork, [&] { cluster.set_working(2, false); });
  CHECK(cluster.run(kWork + kOperationTimeout - 2.0) != hangs_then);
  for (int rank = 0; rank < 3; ++rank) CHECK_FALSE(cluster.failure(rank));
  REQUIRE(cluster.warnings().size() == 1);
  CHECK_THAT(cluster.warnings().front(),
             Catch::Matchers::StartsWith("rank 2 on host node-2 has been reading or writing "
                                         "files for 100 s"));
  if (!hangs_then) return;
  REQUIRE(cluster.run(kWork + kOperationTimeout + kTimeout));
  for (const int rank : {0, 1}) {
    CHECK_THAT(cluster.failure(rank).value_or(""), ContainsSubstring("rank 2 on host node-2 hangs"));
  }
}

TEST_CASE("watchdog: a rank that dies while it works on files is named") {
  SimulatedCluster cluster = barriers(4, 1000);
  cluster.network().at(1.0, [&] {
    cluster.set_position(2, {.round = 5, .phase = Phase::kSaving});
    cluster.set_working(2, true);
    cluster.compute(2, 1000.0);
  });
  cluster.network().at(300.0, [&] { cluster.network().kill(2); });
  REQUIRE(cluster.run(300.0 + 2.0 * kTimeout));
  for (const int rank : {0, 1, 3}) {
    CHECK_THAT(cluster.failure(rank).value_or(""),
               ContainsSubstring("rank 2 on host node-2 is dead") && ContainsSubstring("round 5 (saving)"));
  }
}

TEST_CASE("watchdog: a rank that does not come to the end is named") {
  SimulatedCluster cluster(3, 1,
                           [](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step > 0 || rank > 0) return nullptr;
                             return std::make_unique<FlagReduction>(0);
                           },
                           {.peer_timeout_seconds = kTimeout, .operation_timeout_seconds = 100.0});
  cluster.compute(0, 1e4);
  REQUIRE(cluster.run(100.0 + kTimeout));
  for (int rank = 0; rank < 3; ++rank) {
    REQUIRE(cluster.failure(rank));
    CHECK_THAT(*cluster.failure(rank), Catch::Matchers::StartsWith("rank 0 on host node-0 hangs"));
  }
}

TEST_CASE("watchdog: a stop that a dead or stopped rank does not hear of ends the run at once") {
  for (const bool is_dead : {true, false}) {
    CAPTURE(is_dead);
    SimulatedCluster cluster = barriers(4, 1000);
    cluster.network().at(2.0, [&] { is_dead ? cluster.network().kill(2) : cluster.stall(2, 1000.0); });
    cluster.network().at(2.1, [&] { cluster.request_stop(1); });
    cluster.run(30.0);
    CHECK(cluster.ends_at_once(1));
    REQUIRE(cluster.failure(1));
    CHECK_THAT(*cluster.failure(1), ContainsSubstring("rank 2 on host node-2 has not answered within 1 s"));
    CHECK(cluster.end_time(1) < 2.1 + kTimeout / 2.0);  // long before the rank counts as dead
    for (const int rank : {0, 3}) {
      CHECK_FALSE(cluster.ends_at_once(rank));
      CHECK_THAT(cluster.failure(rank).value_or(""), ContainsSubstring("rank 1 on host node-1 has failed") &&
                                                         ContainsSubstring("a signal asks for a stop"));
    }
  }
}

TEST_CASE("watchdog: a stop goes its way while a rank computes for a long time") {
  SimulatedCluster cluster = barriers(4, 60);
  cluster.network().at(2.0, [&] { cluster.compute(2, 1.9 * kTimeout); });
  cluster.network().at(2.1, [&] { cluster.request_stop(1); });
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < 4; ++rank) CHECK(cluster.is_closed(rank));
  CHECK(cluster.end_time(0) > 1.9 * kTimeout);
}

TEST_CASE("watchdog: a rank that answers but keeps the others waiting ends a polite stop, by its name") {
  for (const int asked : {1, 2}) {  // rank 2 may have got the signal itself
    CAPTURE(asked);
    SimulatedCluster cluster = barriers(4, 1000);
    cluster.network().at(2.0, [&] { cluster.compute(2, 1e5); });
    cluster.network().at(2.1, [&] { cluster.request_stop(asked); });
    CHECK_FALSE(cluster.run(2.0 * kTimeout));
    REQUIRE(cluster.run(2.1 + 4.0 * kTimeout));
    for (int rank = 0; rank < 4; ++rank) {
      CHECK_THAT(cluster.failure(rank).value_or(""),
                 Catch::Matchers::StartsWith("rank 2 on host node-2 hangs") &&
                     ContainsSubstring("a signal asks for a stop; the model was not saved"));
      CHECK((!cluster.ends_at_once(rank) || rank == asked));
    }
  }
}

TEST_CASE("watchdog: a stop waits for a rank that works on files") {
  SimulatedCluster cluster = barriers(4, 60);
  cluster.network().at(2.0, [&] {
    cluster.compute(2, 300.0);
    cluster.set_working(2, true);
    cluster.request_stop(1);
  });
  cluster.network().at(301.0, [&] { cluster.set_working(2, false); });
  REQUIRE(cluster.run(400.0));
  for (int rank = 0; rank < 4; ++rank) CHECK(cluster.is_closed(rank));
}

TEST_CASE("watchdog: a process that was stopped itself gives the others time to hear of its stop") {
  SimulatedCluster cluster = barriers(4, 100);
  for (const double after : {0.0, 0.0001, 0.3}) {  // the signal comes before the process goes on, and after that
    CAPTURE(after);
    cluster.network().at(2.0 + 10.0 * after, [&] { cluster.request_stop(1); });
    cluster.network().at(2.0 + 10.0 * after + after, [&] { cluster.stall(1, 0.5 * kTimeout); });
  }
  REQUIRE(cluster.run(60.0));
  for (int rank = 0; rank < 4; ++rank) CHECK(cluster.is_closed(rank));
}

}  // namespace arbalest::tests
