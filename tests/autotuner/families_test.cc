// The tuner against 1,000 simulated devices of every family.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tests/autotuner/simulated_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

constexpr int kCases = 1000;
constexpr int kWindows = 2500;
constexpr double kGoodEnough = 0.95;  // of the best throughput

struct Tally {
  int good = 0;
  int runs = 0;
  int most_probes_of_16 = 0;
  int most_probes_of_32 = 0;
  int most_windows = 0;
  double windows = 0.0;
  double lost_windows = 0.0;
  double worst_restlessness = 0.0;  // resizes per 100 windows after the choice or the drift
  double resizes = 0.0;
  int changed_choices = 0;  // later searches that chose another count
  double hundreds = 0.0;
};

// What counts: the first choice; of a drifting device the count at the end.
bool is_good(const SimulatedDevice& device, const SimulatedRun& run, Family family) {
  if (run.chosen == 0) return false;
  const bool drifts = family == Family::kDrifting;
  const int window = drifts ? kWindows - 1 : 0;
  const int count = drifts ? run.learners.back() : run.chosen;
  return device.throughput(count, window) >= kGoodEnough * best_of(device, window).throughput;
}

int changed_choices(const SimulatedRun& run) {
  int changed = 0;
  int present = run.chosen;
  for (const autotuner::Decision& decision : run.decisions) {
    if (!decision.done || decision.to.learners == present) continue;
    present = decision.to.learners;
    ++changed;
  }
  return changed;
}

void count(const SimulatedDevice& device, const SimulatedRun& run, Family family, Tally& tally) {
  ++tally.runs;
  if (is_good(device, run, family)) ++tally.good;
  int& most = device.space.back().learners <= 16 ? tally.most_probes_of_16 : tally.most_probes_of_32;
  most = std::max(most, run.most_probes);
  tally.most_windows = std::max(tally.most_windows, run.windows_to_choice);
  tally.windows += run.windows_to_choice;
  tally.lost_windows += run.lost_windows;
  // Not the resize to the choice, and not the last search for a device that drifts.
  const int rests_from = family == Family::kDrifting ? kDriftEnds + 100 : run.windows_to_choice + 1;
  const double hundreds = (kWindows - rests_from) / 100.0;
  const int after = resizes(run, rests_from, kWindows);
  tally.worst_restlessness = std::max(tally.worst_restlessness, after / hundreds);
  tally.resizes += after;
  tally.changed_choices += changed_choices(run);
  tally.hundreds += hundreds;
}

Tally play(Family family, const autotuner::TunerOptions& options = {}) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    const SimulatedDevice device = draw_device(family, seed);
    count(device, simulate(device, seed, kWindows, options), family, tally);
  }
  return tally;
}

std::string describe(Family family, const Tally& tally) {
  return fmt::format(
      "{:10s} within 5 %: {:5.1f} %; probes at most {} (16), {} (32); windows to the choice {:.0f} (at most {}), "
      "{:.1f} "
      "of them lost; resizes per 100 windows afterwards {:.3f}, at most {:.2f}; choices changed {:.3f} times",
      name_of(family), 100.0 * tally.good / tally.runs, tally.most_probes_of_16, tally.most_probes_of_32,
      tally.windows / tally.runs, tally.most_windows, tally.lost_windows / tally.runs, tally.resizes / tally.hundreds,
      tally.worst_restlessness, static_cast<double>(tally.changed_choices) / tally.runs);
}

}  // namespace

TEST_CASE("tuner: chooses within 5 % of the best of every family, in few probes, and then rests") {
  int good = 0;
  std::string report;
  for (const Family family : kFamilies) {
    const Tally tally = play(family);
    good += tally.good;
    const std::string line = describe(family, tally);
    report += line + "\n";
    INFO(line);
    CHECK(tally.good >= 0.90 * kCases);
    CHECK(tally.most_probes_of_16 <= 6);
    CHECK(tally.most_probes_of_32 <= 8);
    CHECK(tally.worst_restlessness <= 1.0);
    if (family != Family::kDrifting) CHECK(tally.changed_choices <= 0.12 * kCases);
    CHECK(tally.most_windows <= 8 * (40 + 2));
    CHECK(tally.lost_windows <= (family == Family::kNoisy ? 40.0 : 20.0) * kCases);
  }
  INFO(report);
  CHECK(good >= 0.95 * kCases * static_cast<double>(std::size(kFamilies)));
}

}  // namespace arbalest::tests
