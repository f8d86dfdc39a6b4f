// A simulated cluster has faults that follow from a seed: every run ends, every survivor names a dead rank in time, all
// sums are right to the bit, and a seed repeats exactly.
#include <array>
#include <map>
#include <optional>
#include <random>

#include "engine/process/operations/flag_reduction.h"
#include "tests/process/simulated_cluster.h"
#include "tests/process/small_job.h"
#include "tests/process/vectors.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"

namespace arbalest::tests {
namespace {

using engine::process::FlagReduction;
using engine::process::Operation;
using engine::process::Progress;

constexpr double kTimeout = 3.0;
// The last survivor ends this long after the fault: the timeout, two heartbeats, and the spread of the news.
constexpr double kDeadline = kTimeout + 2.0 * kTimeout / 6.0 + 1.5;

// Two ranks that do not watch each other first wait for the timeout before they ask. So does a rank that takes leave.
constexpr double kCutDeadline = 2.0 * kDeadline;

std::string name_of(int rank) { return "rank " + std::to_string(rank) + " on host node-" + std::to_string(rank); }

bool names_one_of(const std::string& message, const std::set<int>& ranks) {
  return std::ranges::any_of(ranks, [&](int rank) { return message.find(name_of(rank) + " ") != std::string::npos; });
}

bool says_counted_as_dead(const std::optional<std::string>& message) {
  return message && message->find("count this one") != std::string::npos;
}

enum class Fault { kNone, kKill, kKillTwo, kStallShort, kStallLong, kPartition, kCut, kOwnError, kStop };
constexpr unsigned kFaults = 9;
constexpr const char* kReason = "its disk is full";

// The job, the network and the fault of a scenario follow from its seed.
class Scenario {
 public:
  explicit Scenario(unsigned seed)
      : generator_(seed),
        ranks_(2 + draw(15)),
        rounds_(1 + draw(4)),
        fault_(static_cast<Fault>(draw(kFaults))),
        victim_(draw(static_cast<unsigned>(ranks_))),
        second_(draw(static_cast<unsigned>(ranks_))),
        is_at_end_(draw(4) == 0),
        fault_time_(0.001 * draw(static_cast<unsigned>(8 * rounds_))),
        has_eager_signals_(draw(4) != 0),
        job_(ranks_, rounds_, seed),
        cluster_(
            ranks_, seed, std::ref(job_),
            {.peer_timeout_seconds = kTimeout,
             .depth = 1 + draw(3),
             .pause_seconds = 0.002 * draw(3),
             .has_random_pauses = draw(2) == 0,
             .first_number = std::array<std::uint64_t, 3>{0, 8190, 16'383}[static_cast<std::size_t>(draw(3))],
             .network = {.eager_bytes = std::array<std::size_t, 4>{0, 16, 64, 4096}[static_cast<std::size_t>(draw(4))],
                         .has_eager_signals = has_eager_signals_,
                         .reports_dead = draw(3) == 0}}) {
    guilty_.insert(victim_);
    if (fault_ != Fault::kNone) cluster_.network().at(fault_time_, [this] { begin_fault(); });
  }

  // Runs the job and checks that it ends as it must.
  void run() {
    CAPTURE(ranks_, rounds_, static_cast<int>(fault_), victim_, second_, is_at_end_, fault_time_, has_eager_signals_);
    CHECK(cluster_.run(60.0));  // no deadlock
    for (int rank = 0; rank < ranks_; ++rank) {
      if (cluster_.network().is_alive(rank) || fault_ == Fault::kOwnError) check(rank);
    }
  }

  bool has_fault() const { return fault_ != Fault::kNone; }
  // The victim's state when the fault came, if it came.
  const std::optional<Progress::State>& met() const { return met_; }
  std::uint64_t history() { return cluster_.network().history(); }
  std::vector<double> ends() const {
    std::vector<double> ends;
    for (int rank = 0; rank < ranks_; ++rank) ends.push_back(cluster_.end_time(rank));
    return ends;
  }

 private:
  int draw(unsigned count) { return static_cast<int>(generator_() % count); }

  void begin_fault() {
    const Progress::State state = cluster_.state(victim_);
    if (is_at_end_ && state == Progress::State::kRunning) {  // later
      fault_time_ = cluster_.network().now() + 0.0005;
      return cluster_.network().at(fault_time_, [this] { begin_fault(); });
    }
    met_ = state;
    for (int rank = 0; rank < ranks_; ++rank) is_late_ |= cluster_.state(rank) != Progress::State::kRunning;
    if (fault_ == Fault::kKill || fault_ == Fault::kKillTwo) cluster_.network().kill(victim_);
    if (fault_ == Fault::kKillTwo) {
      cluster_.network().kill(second_);
      guilty_.insert(second_);
    }
    if (fault_ == Fault::kStallShort) cluster_.stall(victim_, 0.5 * kTimeout);
    if (fault_ == Fault::kStallLong) cluster_.stall(victim_, 5.0 * kTimeout);
    if (fault_ == Fault::kOwnError) cluster_.fail(victim_, {engine::ErrorKind::kOutOfMemory, kReason});
    if (fault_ == Fault::kStop) cluster_.request_stop(victim_);
    if (fault_ == Fault::kCut) {
      cluster_.network().cut(victim_, second_);
      guilty_.insert(second_);
    }
    if (fault_ == Fault::kPartition) {
      guilty_.clear();
      for (int rank = 0; rank <= victim_ / 2; ++rank) guilty_.insert(rank);
      cluster_.network().partition(guilty_);
    }
  }

  void check(int rank) {
    INFO("rank " << rank << ": " << cluster_.failure(rank).value_or("no failure"));
    switch (fault_) {
      case Fault::kNone:
      case Fault::kStallShort:
      case Fault::kStop:  // all hear of it, so nothing ends before its time
        CHECK(cluster_.is_closed(rank));
        CHECK(job_.is_right(rank));
        break;
      case Fault::kKill:
      case Fault::kKillTwo: check_survivor(rank, guilty_, kDeadline); break;
      case Fault::kStallLong: check_stalled(rank); break;
      case Fault::kPartition: check_side(rank); break;
      case Fault::kCut: check_cut(rank); break;
      case Fault::kOwnError: check_told(rank); break;
    }
  }

  // A rank that is not to blame has closed, or has named one of `guilty` in time.
  void check_survivor(int rank, const std::set<int>& guilty, double deadline) {
    if (cluster_.is_closed(rank)) {
      CHECK(job_.is_right(rank));
      return;
    }
    REQUIRE(cluster_.failure(rank));
    CHECK(names_one_of(*cluster_.failure(rank), guilty));
    CHECK(cluster_.end_time(rank) <= fault_time_ + (is_late_ ? kCutDeadline : deadline));
  }

  // The stalled rank hears that it counts as dead, unless the others could not send the news while it did not receive.
  void check_stalled(int rank) {
    if (rank != victim_) return check_survivor(rank, guilty_, kDeadline);
    if (cluster_.is_closed(rank)) return;
    REQUIRE(cluster_.failure(rank));
    if (has_eager_signals_) CHECK(says_counted_as_dead(cluster_.failure(rank)));
  }

  // Each side blames the other.
  void check_side(int rank) {
    std::set<int> others;
    for (int other = 0; other < ranks_; ++other) {
      if (guilty_.contains(other) != guilty_.contains(rank)) others.insert(other);
    }
    check_survivor(rank, others, kDeadline);
  }

  void check_cut(int rank) {
    if (guilty_.size() < 2) {  // the rank was cut off from itself, or the fault did not come
      CHECK(cluster_.is_closed(rank));
      return;
    }
    if (guilty_.contains(rank) && says_counted_as_dead(cluster_.failure(rank))) return;
    std::set<int> others = guilty_;
    others.erase(rank);
    check_survivor(rank, others, kCutDeadline);
  }

  // The error of a rank becomes that of all ranks, with its name and its reason.
  void check_told(int rank) {
    if (rank != victim_) check_survivor(rank, {victim_}, kDeadline);
    if (cluster_.is_closed(rank)) return;
    const std::string reason = rank == victim_ ? kReason : std::string(": ") + kReason;
    CHECK_THAT(cluster_.failure(rank).value_or("no failure"), Catch::Matchers::EndsWith(reason));
  }

  std::mt19937 generator_;
  const int ranks_;
  const int rounds_;
  const Fault fault_;
  const int victim_;
  const int second_;
  const bool is_at_end_;  // the fault comes when the victim has ended its work, not before
  double fault_time_;
  const bool has_eager_signals_;
  SmallJob job_;
  SimulatedCluster cluster_;
  std::set<int> guilty_;
  std::optional<Progress::State> met_;
  bool is_late_ = false;  // some rank had ended its work when the fault came
};

}  // namespace

TEST_CASE("simulated cluster: every seed of faults ends as it must") {
  const unsigned seeds = kSanitized ? 150 : 1500;
  std::map<Progress::State, unsigned> met;
  unsigned faults = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    Scenario scenario(seed);
    scenario.run();
    faults += scenario.has_fault() ? 1 : 0;
    if (scenario.met()) ++met[*scenario.met()];
  }
  // The faults met jobs at work, and jobs that were taking leave.
  CHECK(met[Progress::State::kRunning] > faults / 2);
  CHECK(met[Progress::State::kClosing] > faults / 4);
}

TEST_CASE("simulated cluster: a seed repeats exactly") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Scenario first(seed);
    Scenario second(seed);
    first.run();
    second.run();
    CHECK(first.history() == second.history());
    CHECK(first.ends() == second.ends());
  }
  Scenario first(0);
  Scenario second(1);
  first.run();
  second.run();
  CHECK(first.history() != second.history());
}

TEST_CASE("simulated cluster: channels are used again by later operations") {
  constexpr int kSteps = 2 * engine::process::kAllReduceChannels + 10;
  std::array<std::vector<FlagReduction*>, 2> reductions;
  SimulatedCluster cluster(2, 23,
                           [&](int rank, int step) -> std::unique_ptr<Operation> {
                             if (step == kSteps) return nullptr;
                             auto& of_rank = reductions[static_cast<std::size_t>(rank)];
                             auto reduction = std::make_unique<FlagReduction>(rank == 0 ? step + 1 : 0);
                             of_rank.push_back(reduction.get());
                             return reduction;
                           },
                           {.depth = 1, .network = {.eager_bytes = 0}});
  REQUIRE(cluster.run(1e4));
  for (const std::vector<FlagReduction*>& of_rank : reductions) {
    REQUIRE(of_rank.size() == kSteps);
    std::uint64_t step = 0;
    for (const FlagReduction* reduction : of_rank) CHECK(reduction->result() == ++step);
  }
}

TEST_CASE("simulated cluster: a rank that dies inside the all-reduce is named, whichever message was its last") {
  constexpr int kRanks = 4;
  for (int victim = 0; victim < kRanks; ++victim) {
    int last = 1;
    for (bool was_killed = true; was_killed; ++last) {
      CAPTURE(victim, last);
      const Addends addends(kRanks, 300, 5);
      std::vector<std::vector<float>> values = addends.of_rank;
      SimulatedCluster cluster(
          kRanks, static_cast<std::uint64_t>(last),
          [&](int rank, int step) -> std::unique_ptr<Operation> {
            if (step > 1) return nullptr;
            if (step == 1) return std::make_unique<FlagReduction>(0);  // so that the sum is not the end of the run
            return std::make_unique<engine::process::AllReduce>(
                values[static_cast<std::size_t>(rank)], rank, kRanks,
                engine::process::AllReduceOptions{.chunk = 16, .window = 2});
          },
          {.peer_timeout_seconds = kTimeout, .depth = 1});
      cluster.network().kill_after_messages(victim, last);
      REQUIRE(cluster.run(60.0));
      was_killed = !cluster.network().is_alive(victim);
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank == victim && was_killed) continue;
        INFO("rank " << rank << ": " << cluster.failure(rank).value_or("no failure"));
        CHECK(cluster.failure(rank).has_value() == was_killed);
        if (was_killed) CHECK(names_one_of(cluster.failure(rank).value_or(""), {victim}));
        CHECK(cluster.end_time(rank) <= kDeadline);
      }
    }
    CHECK(last > 20);  // there were that many instants
  }
}

}  // namespace arbalest::tests
