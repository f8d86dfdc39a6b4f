// Clocks and dispatcher of asynchronous SGD, under many random orders of completion.
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "scheduler/rounds/dispatcher.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"

namespace {

using namespace arbalest;

// Learners whose clocks complete in a random order. Slow learners complete rarely.
class RandomSchedule {
 public:
  RandomSchedule(std::uint64_t seed, std::optional<int> bound)
      : random_(seed), learners_(2 + random_() % 7), bound_(bound), started_(learners_), completed_(learners_) {
    dispatcher_.restart(learners_, bound);
    for (std::size_t j = 0; j < learners_; ++j) weight_.push_back(1.0 + static_cast<double>(random_() % 50));
  }

  // The clocks as this test counts them, and not as the dispatcher does.
  void run(int completions) {
    for (int done = 0; done < completions; ++done) {
      start_all();
      const std::size_t learner = choose_working();
      const std::int64_t expected = pushes_ - started_[learner].value();
      REQUIRE(dispatcher_.complete(learner) == expected);
      most_stale_ = std::max(most_stale_, expected);
      started_[learner].reset();
      ++completed_[learner];
      ++pushes_;
    }
  }

  std::int64_t largest_lag() const { return largest_lag_; }
  std::int64_t most_stale() const { return most_stale_; }
  std::int64_t learners() const { return static_cast<std::int64_t>(learners_); }

 private:
  void start_all() {
    while (const std::optional<std::size_t> learner = dispatcher_.start()) {
      REQUIRE_FALSE(started_[*learner].has_value());
      largest_lag_ = std::max(largest_lag_, completed_[*learner] - std::ranges::min(completed_));
      started_[*learner] = pushes_;
    }
    for (std::size_t j = 0; j < learners_; ++j) {  // whoever waits has to
      if (started_[j]) continue;
      REQUIRE(bound_.has_value());
      REQUIRE(completed_[j] - std::ranges::min(completed_) > *bound_);
    }
  }

  std::size_t choose_working() {
    std::vector<double> weights = weight_;
    for (std::size_t j = 0; j < learners_; ++j) {
      if (!started_[j]) weights[j] = 0.0;
    }
    REQUIRE(std::ranges::any_of(weights, [](double weight) { return weight > 0.0; }));
    return std::discrete_distribution<std::size_t>(weights.begin(), weights.end())(random_);
  }

  std::mt19937_64 random_;
  std::size_t learners_;
  std::optional<int> bound_;
  std::vector<std::optional<std::int64_t>> started_;  // by learner: pushes at its start, while it works
  std::vector<std::int64_t> completed_;
  std::vector<double> weight_;
  scheduler::Dispatcher dispatcher_;
  std::int64_t pushes_ = 0;
  std::int64_t largest_lag_ = 0;
  std::int64_t most_stale_ = 0;
};

}  // namespace

TEST_CASE("in 10,000 random schedules no learner starts further ahead than the bound", "[async]") {
  const std::uint64_t schedules = tests::kSanitized ? 500 : 10'000;
  int reached = 0;
  int outdone = 0;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const int bound = static_cast<int>(seed % 5);
    CAPTURE(seed, bound);
    RandomSchedule schedule(seed, bound);
    schedule.run(60);
    REQUIRE(schedule.largest_lag() <= bound);
    REQUIRE(schedule.most_stale() <= (schedule.learners() - 1) * (2 * bound + 1));
    reached += schedule.largest_lag() == bound ? 1 : 0;
    RandomSchedule unbounded(seed, std::nullopt);
    unbounded.run(60);
    outdone += unbounded.largest_lag() > bound ? 1 : 0;
  }
  // The bound is met, and without it the learners run further apart.
  CHECK(reached > static_cast<int>(schedules / 2));
  CHECK(outdone > static_cast<int>(schedules / 2));
}

TEST_CASE("while one learner stands still the others complete s + 1 clocks", "[async]") {
  for (const int bound : {0, 1, 3}) {
    scheduler::Dispatcher dispatcher;
    dispatcher.restart(3, bound);
    for (const std::size_t expected : {0, 1, 2}) REQUIRE(dispatcher.start() == expected);
    for (int clock = 0; clock <= bound; ++clock) {
      for (const std::size_t learner : {2, 1}) dispatcher.complete(learner);
      if (clock == bound) break;
      // The learner that has been idle longest comes first.
      for (const std::size_t learner : {2, 1}) REQUIRE(dispatcher.start() == learner);
    }
    CHECK_FALSE(dispatcher.start().has_value());
    CHECK(dispatcher.clocks().clock(1) == bound + 1);
    CHECK(dispatcher.complete(0) == 2 * (bound + 1));
    CHECK(dispatcher.start() == 2);
    CHECK(dispatcher.start() == 1);
    CHECK(dispatcher.start() == 0);
    CHECK_FALSE(dispatcher.all_are_idle());
  }
}
