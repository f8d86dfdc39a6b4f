#include "autotuner/devices_tuner.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/support/catch.h"

namespace arbalest::autotuner {
namespace {

// Seconds per round of a device: a fixed latency, or the time of all learners if this is longer.
struct Speed {
  double latency = 1.0;
  double per_learner = 0.1;

  double round_seconds(int learners) const { return std::max(latency, per_learner * learners); }
};

// Returns learners per second over all devices. A round ends with the slowest device.
double throughput(const std::vector<Speed>& speeds, const std::vector<int>& counts) {
  double slowest = 0.0;
  double learners = 0.0;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    slowest = std::max(slowest, speeds[i].round_seconds(counts[i]));
    learners += counts[i];
  }
  return learners / slowest;
}

std::vector<int> counts_of(const DevicesTuner& tuner) {
  std::vector<int> counts;
  for (const Configuration& count : tuner.present()) counts.push_back(count.learners);
  return counts;
}

// Runs until all searches have ended, but at most `windows` windows. Returns the number of resizes.
int play(DevicesTuner& tuner, const std::vector<Speed>& speeds, int windows, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(1.0, 0.02);
  int resizes = 0;
  for (int window = 0; window < windows && tuner.searching(); ++window) {
    const std::vector<int> counts = counts_of(tuner);
    const auto examples = std::llround(1e6 * throughput(speeds, counts) * noise(random));
    const auto decision = tuner.add(1'000'000, examples, 1.0);
    if (decision && decision->step.action != Action::kKeep) ++resizes;
    if (decision) CHECK(decision->to == tuner.present());
    if (decision) CHECK(decision->done == !tuner.searching());
  }
  return resizes;
}

}  // namespace

TEST_CASE("devices tuner: devices of one kind are tuned together") {
  DevicesTuner tuner({}, {{4, all_counts({1, 16})}});
  const std::vector<Speed> speeds = {{1.0, 0.125}};  // best from 8 learners on
  play(tuner, speeds, 1000);
  CHECK_FALSE(tuner.searching());
  CHECK(throughput(speeds, counts_of(tuner)) >= 0.95 * 8.0);
}

TEST_CASE("devices tuner: devices of different speed get different numbers of learners") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    // The second device takes three times as much time per learner.
    const std::vector<Speed> speeds = {{1.0, 0.0625}, {1.0, 0.1875}};
    DevicesTuner tuner({}, {{1, all_counts({1, 16})}, {1, all_counts({1, 16})}});
    const int resizes = play(tuner, speeds, 3000, seed);
    CHECK_FALSE(tuner.searching());
    CHECK(resizes <= 3 * 7);  // a common search and one turn per device, each with six probes and a choice
    double best = 0.0;
    double best_together = 0.0;
    for (int a = 1; a <= 16; ++a) {
      best_together = std::max(best_together, throughput(speeds, {a, a}));
      for (int b = 1; b <= 16; ++b) best = std::max(best, throughput(speeds, {a, b}));
    }
    const double found = throughput(speeds, counts_of(tuner));
    CHECK(found >= 0.9 * best);
    CHECK(found >= 1.2 * best_together);
  }
}

TEST_CASE("devices tuner: on CPU devices, threads per learner depend on the cores of each kind") {
  DevicesTuner tuner({}, {{1, counts_of_cores({1, 2}, 2)}, {1, counts_of_cores({1, 4}, 4)}});
  CHECK(tuner.present() == std::vector<Configuration>{{2, 1}, {2, 2}});
  play(tuner, {{1.0, 0.5}, {1.0, 0.25}}, 1000);
  CHECK(tuner.present() == std::vector<Configuration>{{2, 1}, {4, 1}});
  // The second kind was tuned last, so its points were measured with the first kind's choice.
  CHECK(tuner.beside_others(1) == std::vector<Configuration>{{2, 1}, {1, 4}});
}

TEST_CASE("devices tuner: if a choice does not fit in memory, its kind continues to search") {
  DevicesTuner tuner({}, {{1, all_counts({1, 4})}, {1, all_counts({1, 4})}}, {4, 4});
  const std::vector<Speed> speeds = {{1.0, 0.25}, {1.0, 0.25}};
  std::optional<DevicesDecision> decision;
  while (!decision || !decision->step.done) {
    decision = tuner.add(1'000'000, std::llround(1e6 * throughput(speeds, counts_of(tuner))), 1.0);
  }
  REQUIRE(decision->step.action == Action::kGrow);  // back to 4 after trying 2
  const DevicesDecision back = tuner.out_of_memory();
  CHECK_FALSE(back.done);
  CHECK(back.to == tuner.present());
  CHECK(std::ranges::all_of(counts_of(tuner), [](int count) { return count < 4; }));
  play(tuner, speeds, 1000);
  CHECK_FALSE(tuner.searching());
}

TEST_CASE("devices tuner: numbers that did not fit in memory are not tried in later turns") {
  constexpr int kDoesNotFit = 7;
  constexpr int kSlowsDown = 1000;
  DevicesTuner tuner({}, {{1, all_counts({1, 16})}, {1, all_counts({1, 16})}}, {5, 4});
  int least_that_failed = 17;
  int resizes_later = 0;
  for (int window = 0; window < 3 * kSlowsDown; ++window) {
    // From window kSlowsDown on, the second device needs more learners, so the first gets another turn.
    const std::vector<Speed> speeds = {{1.0, 0.0625}, window < kSlowsDown ? Speed{1.0, 0.1875} : Speed{2.0, 0.25}};
    const int before = counts_of(tuner).front();
    const auto examples = std::llround(1e6 * throughput(speeds, counts_of(tuner)));
    if (!tuner.add(1'000'000, examples, 1.0)) continue;
    const int learners = counts_of(tuner).front();
    CHECK(learners < least_that_failed);
    if (window > kSlowsDown && learners != before) ++resizes_later;
    if (learners < kDoesNotFit) continue;
    least_that_failed = learners;
    tuner.out_of_memory();
    CHECK(counts_of(tuner).front() == before);
  }
  CHECK(least_that_failed == kDoesNotFit);
  CHECK(resizes_later > 0);
  CHECK(counts_of(tuner).front() == kDoesNotFit - 1);
}

TEST_CASE("devices tuner: every kind begins with its own guess from an earlier search") {
  const auto tuner_of = [](const std::vector<int>& guesses) {
    return DevicesTuner({}, {{1, all_counts({1, 16})}, {1, all_counts({1, 16})}}, guesses);
  };
  const std::vector<Speed> speeds = {{1.0, 0.0625}, {1.0, 0.1875}};
  DevicesTuner tuner = tuner_of({15, 5});
  CHECK(counts_of(tuner) == std::vector<int>{15, 5});
  CHECK(tuner.searching());
  CHECK(play(tuner, speeds, 3000) <= 2 * 4);  // two turns, each around a good number
  CHECK_FALSE(tuner.searching());
  CHECK(throughput(speeds, counts_of(tuner)) >= 0.9 * throughput(speeds, {15, 5}));
  CHECK(counts_of(tuner_of({40, 1})) == std::vector<int>{16, 1});
  CHECK(counts_of(tuner_of({3, 3})) == std::vector<int>{3, 3});
  CHECK_THROWS_AS(tuner_of({3}), std::invalid_argument);
}

TEST_CASE("devices tuner: no devices, or kinds without a common candidate, are refused") {
  CHECK_THROWS_AS(DevicesTuner({}, {}), std::invalid_argument);
  CHECK_THROWS_AS(DevicesTuner({}, {{1, all_counts({1, 2})}, {1, all_counts({3, 4})}}), std::invalid_argument);
}

}  // namespace arbalest::autotuner
