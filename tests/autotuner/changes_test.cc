// The tuner on a device that changes: competing load, lack of memory, wrong guesses.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "tests/autotuner/simulated_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

constexpr int kPhase = 2500;  // windows

// Returns the throughput of the number of learners at the end of a phase, as a fraction of the best.
double share_at_end(const SimulatedDevice& device, const SimulatedRun& run, int phase) {
  const int window = (phase + 1) * kPhase - 1;
  return device.throughput(run.learners[static_cast<std::size_t>(window)], window) / best_of(device, window).throughput;
}

}  // namespace

TEST_CASE("tuner: adapts to a competing load that starts and ends") {
  constexpr int kCases = 300;
  int followed = 0;
  double least_share = 1.0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    const SimulatedDevice device = draw_shared_device(seed, kPhase, 2 * kPhase);
    const SimulatedRun run = simulate(device, seed, 3 * kPhase);
    bool all = true;
    for (int phase = 0; phase < 3; ++phase) {
      const double share = share_of_best(device, run, phase * kPhase, (phase + 1) * kPhase);
      least_share = std::min(least_share, share);
      if (share < 0.90 || share_at_end(device, run, phase) < 0.95) all = false;
    }
    if (all) ++followed;
    CHECK(resizes(run, 0, 3 * kPhase) <= 3 * kPhase / 100);
  }
  INFO(fmt::format("followed in {} of {} cases; the least share of a phase is {:.2f}", followed, kCases, least_share));
  CHECK(followed >= 0.95 * kCases);
}

TEST_CASE("tuner: searches cost at most 3 % of throughput, even if it changes a little often") {
  constexpr int kCases = 300;
  constexpr int kWindows = 620;  // ten epochs of LeNet on two fast cores
  const int steady = GENERATE(32, 64, 128);
  double lost = 0.0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> levels;
    for (int i = 0; i <= kWindows / steady; ++i) levels.push_back(uniform(random, 0.88, 1.12));
    const SimulatedDevice device{.space = autotuner::counts_of_cores({1, 4}, 2),
                                 .throughput =
                                     [&](int learners, int window) {
                                       constexpr double kShares[] = {0.5, 1.0, 0.98, 0.96};
                                       return kShares[learners - 1] * levels[static_cast<std::size_t>(window / steady)];
                                     },
                                 .noise = 0.03};
    const SimulatedRun run = simulate(device, seed, kWindows);
    lost += 1.0 - share_of_best(device, run, 0, kWindows);
  }
  INFO(fmt::format("{:.2f} % on average", 100.0 * lost / kCases));
  CHECK(lost <= 0.03 * kCases);
}

TEST_CASE("tuner: a right guess from an earlier search saves probes, and a wrong one is corrected") {
  constexpr int kCases = 1000;
  int good = 0;
  int windows = 0;
  int windows_with_guess = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    const SimulatedDevice device = draw_device(Family::kUnimodal, seed);
    const Best best = best_of(device, 0);
    const SimulatedRun right = simulate(device, seed, 500, {}, {best.learners, autotuner::Extent::kAround});
    windows_with_guess += right.windows_to_choice;
    windows += simulate(device, seed, 500).windows_to_choice;
    std::mt19937_64 random(seed);
    const auto guess = static_cast<int>(uniform(random, 1.0, device.space.back().learners + 1.0));
    const SimulatedRun run = simulate(device, seed, 500, {}, {guess, autotuner::Extent::kAround});
    CHECK(run.most_probes <= (device.space.back().learners <= 16 ? 6 : 8));
    if (device.throughput(run.chosen, 0) >= 0.95 * best.throughput) ++good;
  }
  INFO(fmt::format("any guess: {} of {} good; windows to the choice {} with the right guess, {} without", good, kCases,
                   windows_with_guess, windows));
  CHECK(good >= 0.95 * kCases);
  CHECK(windows_with_guess < 0.75 * windows);
}

TEST_CASE("tuner: numbers that did not fit in memory are not tried again") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const SimulatedDevice device = draw_device(Family::kCliff, seed);
    const SimulatedRun run = simulate(device, seed, 2500);
    int ceiling = device.space.back().learners;
    for (std::size_t i = 0; i < run.decisions.size(); ++i) {
      const autotuner::Decision& decision = run.decisions[i];
      CHECK(decision.to.learners <= ceiling);
      const bool failed = decision.action == autotuner::Action::kGrow && decision.to.learners >= device.does_not_fit;
      if (!failed) continue;
      ceiling = decision.to.learners - 1;
      const autotuner::Decision& back = run.decisions.at(i + 1);
      CHECK(back.from == decision.to);
      CHECK(back.to == decision.from);  // the last number that fit
      CHECK(back.action == autotuner::Action::kShrink);
      CHECK_THAT(back.reason, ContainsSubstring("do not fit in memory"));
    }
    CHECK(std::ranges::max(run.learners) < device.does_not_fit);
    CHECK(run.failed_resizes <= 4);
  }
}

}  // namespace arbalest::tests
