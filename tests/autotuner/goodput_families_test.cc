// Runs the tuner with goodput on simulated devices of every family, whose gradients have a noise scale.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/autotuner/simulated_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

constexpr int kCases = 200;
constexpr int kWindows = 2500;
constexpr double kGoodEnough = 0.95;  // as a fraction of the best goodput

struct Tally {
  int good = 0;         // at the end
  int good_choice = 0;  // at the first choice
  int good_by_throughput = 0;
  int most_probes = 0;
  double probes = 0.0;  // in the first search
  double probes_by_throughput = 0.0;
  double share = 0.0;  // fraction of the best goodput over the whole run
  double worst_restlessness = 0.0;
  double resizes = 0.0;  // per 100 windows
  bool stays_within_limits = true;
};

bool is_good(const SimulatedDevice& device, int learners, int window) {
  return device.worth(learners, window) >= kGoodEnough * best_of(device, window).throughput;
}

// Returns the number of decisions before the first choice, plus one for the first number of learners.
double probes_of_first_search(const SimulatedRun& run) {
  const auto choice = std::ranges::find_if(run.decisions, &autotuner::Decision::done);
  return static_cast<double>(choice - run.decisions.begin()) + 1.0;
}

Tally play(Family family) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    const SimulatedDevice device = draw_learning_device(family, seed);
    const SimulatedRun run = simulate(device, seed, kWindows);
    SimulatedDevice throughput_only = device;
    throughput_only.noise_scale = nullptr;
    const SimulatedRun by_throughput = simulate(throughput_only, seed, kWindows);
    const int last = kWindows - 1;
    if (is_good(device, run.learners.back(), last)) ++tally.good;
    if (is_good(device, run.chosen, 0)) ++tally.good_choice;
    if (is_good(device, by_throughput.learners.back(), last)) ++tally.good_by_throughput;
    tally.most_probes = std::max(tally.most_probes, run.most_probes);
    if (run.most_probes > (device.space.back().learners <= 16 ? 6 : 8)) tally.stays_within_limits = false;
    tally.probes += probes_of_first_search(run) / kCases;
    tally.probes_by_throughput += probes_of_first_search(by_throughput) / kCases;
    tally.share += share_of_best(device, run, 0, kWindows) / kCases;
    // After a drift the run gets more time, because a single learner's gradients are averaged over 200 windows.
    const int rests_from = family == Family::kDrifting ? kDriftEnds + 300 : run.windows_to_choice + 1;
    const double restlessness = 100.0 * resizes(run, rests_from, kWindows) / (kWindows - rests_from);
    tally.worst_restlessness = std::max(tally.worst_restlessness, restlessness);
    tally.resizes += restlessness / kCases;
  }
  return tally;
}

std::string describe(Family family, const Tally& tally) {
  return fmt::format(
      "{:10s} within 5 % at the end {:.1f} %, first choice {:.1f} %, by throughput {:.1f} %; probes at most {}, on "
      "average {:.2f}, by throughput {:.2f}; share of the best {:.3f}; resizes per 100 windows {:.3f}, at most {:.2f}",
      name_of(family), 100.0 * tally.good / kCases, 100.0 * tally.good_choice / kCases,
      100.0 * tally.good_by_throughput / kCases, tally.most_probes, tally.probes, tally.probes_by_throughput,
      tally.share, tally.resizes, tally.worst_restlessness);
}

}  // namespace

TEST_CASE("goodput: for every family, the tuner chooses within 5 % of the best, in as few probes, and then stays") {
  int good = 0;
  int good_by_throughput = 0;
  std::string report;
  for (const Family family : kFamilies) {
    const Tally tally = play(family);
    good += tally.good;
    good_by_throughput += tally.good_by_throughput;
    const std::string line = describe(family, tally);
    report += line + "\n";
    INFO(line);
    CHECK(tally.good >= 0.90 * kCases);
    CHECK(tally.stays_within_limits);
    CHECK(tally.probes <= tally.probes_by_throughput);
    CHECK(tally.worst_restlessness <= 1.0);
    CHECK(tally.share >= 0.93);
  }
  INFO(report);
  CHECK(good >= 0.95 * kCases * static_cast<double>(std::size(kFamilies)));
  // Tuning by throughput alone is worse.
  CHECK(good_by_throughput <= 0.75 * kCases * static_cast<double>(std::size(kFamilies)));
}

}  // namespace arbalest::tests
