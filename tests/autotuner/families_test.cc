// Runs the tuner against 1,000 simulated devices of every family.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/autotuner/simulated_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

constexpr int kCases = 1000;
constexpr int kWindows = 2500;
constexpr double kGoodEnough = 0.95;  // as a fraction of the best throughput

// The start of a run: the candidates and the first guess.
struct Start {
  std::string name;
  // Cores of a CPU device, with candidates up to twice this number. 0: all candidates of the drawn device.
  int cores = 0;
  std::optional<int> guess = {};
  bool remembers_best = false;  // the guess is the best number, from a perfect earlier search
};

struct Tally {
  int good = 0;
  int runs = 0;
  int most_probes = 0;
  bool stays_within_limits = true;  // no search exceeds its limit of probes
  int most_windows = 0;
  double windows = 0.0;
  double lost_windows = 0.0;
  double worst_restlessness = 0.0;  // resizes per 100 windows after the choice or the drift
  double resizes = 0.0;
  int changed_choices = 0;  // later searches that chose another number
  double hundreds = 0.0;
};

// Judges the first choice, or for a drifting device the number of learners at the end.
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

// Returns the limit of probes: 6 for up to 16 learners, 8 for up to 32, and one more per further octave.
int probes_allowed(const SimulatedDevice& device) {
  int allowed = 6;
  if (device.space.back().learners > 16) allowed = 8;
  for (int most = 32; most < device.space.back().learners; most *= 2) ++allowed;
  return allowed;
}

void count(const SimulatedDevice& device, const SimulatedRun& run, Family family, Tally& tally) {
  ++tally.runs;
  if (is_good(device, run, family)) ++tally.good;
  tally.most_probes = std::max(tally.most_probes, run.most_probes);
  if (run.most_probes > probes_allowed(device)) tally.stays_within_limits = false;
  tally.most_windows = std::max(tally.most_windows, run.windows_to_choice);
  tally.windows += run.windows_to_choice;
  tally.lost_windows += run.lost_windows;
  // Excludes the resize to the choice, and for a drifting device the last search.
  const int rests_from = family == Family::kDrifting ? kDriftEnds + 100 : run.windows_to_choice + 1;
  const double hundreds = (kWindows - rests_from) / 100.0;
  const int after = resizes(run, rests_from, kWindows);
  tally.worst_restlessness = std::max(tally.worst_restlessness, after / hundreds);
  tally.resizes += after;
  tally.changed_choices += changed_choices(run);
  tally.hundreds += hundreds;
}

// Starts a run as jobs::TunedChanges does. If the guess does not fit in memory, the run starts with half as many
// learners, and only smaller numbers are candidates.
SimulatedRun run_from(const Start& start, SimulatedDevice& device, std::uint64_t seed) {
  if (start.remembers_best) {
    return simulate(device, seed, kWindows, {}, {best_of(device, 0).learners, autotuner::Extent::kAround});
  }
  std::optional<int> guess = start.guess;
  while (guess && *guess >= device.does_not_fit) {
    std::erase_if(device.space, [&](const autotuner::Configuration& count) { return count.learners >= *guess; });
    guess = autotuner::nearest(device.space, *guess / 2).learners;
  }
  return simulate(device, seed, kWindows, {}, {guess, autotuner::Extent::kEverywhere});
}

Tally play(Family family, const Start& start) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SimulatedDevice device =
        start.cores == 0 ? draw_device(family, seed)
                         : draw_device(family, seed, autotuner::counts_of_cores({1, 2 * start.cores}, start.cores));
    const SimulatedRun run = run_from(start, device, seed);
    count(device, run, family, tally);
  }
  return tally;
}

std::string describe(const Start& start, Family family, const Tally& tally) {
  return fmt::format(
      "{:30s} {:10s} within 5 %: {:5.1f} %; probes at most {}; windows to the choice {:.0f} (at most {}), {:.1f} "
      "of them lost; resizes per 100 windows afterwards {:.3f}, at most {:.2f}; choices changed {:.3f} times",
      start.name, name_of(family), 100.0 * tally.good / tally.runs, tally.most_probes, tally.windows / tally.runs,
      tally.most_windows, tally.lost_windows / tally.runs, tally.resizes / tally.hundreds, tally.worst_restlessness,
      static_cast<double>(tally.changed_choices) / tally.runs);
}

// Returns the windows that a search may lose on average. With few candidates the loss is small. With many candidates
// the first ones are slow.
double windows_to_lose(const Start& start, Family family) {
  const double windows = start.cores == 0 ? 20.0 : 5.0 * std::log2(2.0 * start.cores);
  return family == Family::kNoisy ? 2.0 * windows : windows;
}

void check_families(const Start& start) {
  int good = 0;
  std::string report;
  for (const Family family : kFamilies) {
    const Tally tally = play(family, start);
    good += tally.good;
    const std::string line = describe(start, family, tally);
    report += line + "\n";
    INFO(line);
    CHECK(tally.good >= 0.90 * kCases);
    CHECK(tally.stays_within_limits);
    CHECK(tally.worst_restlessness <= 1.0);
    if (family != Family::kDrifting) CHECK(tally.changed_choices <= 0.12 * kCases);
    CHECK(tally.most_windows <= tally.most_probes * (40 + 2));
    CHECK(tally.lost_windows <= windows_to_lose(start, family) * kCases);
  }
  INFO(report);
  CHECK(good >= 0.95 * kCases * static_cast<double>(std::size(kFamilies)));
}

}  // namespace

TEST_CASE("tuner: for every family, chooses within 5 % of the best in few probes and then stays") {
  check_families({.name = "no guess"});
}

TEST_CASE("tuner: the same for every family, with the number of cores as the start of the search") {
  for (const int cores : {4, 16, 64}) {
    check_families({.name = fmt::format("{} cores", cores), .cores = cores, .guess = cores});
  }
  check_families({.name = "64 cores, from 8", .cores = 64, .guess = 8});
}

TEST_CASE("tuner: the same for every family, with the best number from an earlier search as the guess") {
  check_families({.name = "remembered best", .remembers_best = true});
}

}  // namespace arbalest::tests
