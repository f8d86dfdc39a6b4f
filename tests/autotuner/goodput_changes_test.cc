// The tuner with goodput when the noise scale changes or seems to change.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "tests/autotuner/simulated_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

// A device whose throughput rises with a logarithmic slope of 0.8 up to 16 learners and is constant above.
SimulatedDevice rising_device() {
  return {.space = autotuner::all_counts({1, 32}),
          .throughput = [](int learners, int) { return std::pow(std::min(learners, 16), 0.8); },
          .noise = 0.02};
}

// Returns the mean number of learners in windows [begin, end).
double mean_learners(const SimulatedRun& run, int begin, int end) {
  double sum = 0.0;
  for (int window = begin; window < end; ++window) sum += run.learners[static_cast<std::size_t>(window)];
  return sum / (end - begin);
}

}  // namespace

TEST_CASE("goodput: if the noise scale grows thirtyfold during training, the number of learners grows late") {
  constexpr int kCases = 100;
  constexpr int kWindows = 3000;
  int followed = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SimulatedDevice device = rising_device();
    device.noise_scale = [](int window) { return 1.5 * std::pow(30.0, window / double{kWindows}); };
    const SimulatedRun run = simulate(device, seed, kWindows);
    const double early = mean_learners(run, 100, 600);
    const double late = mean_learners(run, kWindows - 500, kWindows);
    INFO(fmt::format("seed {}: {:.1f} learners early, {:.1f} late, {} resizes, share {:.3f}", seed, early, late,
                     resizes(run, 0, kWindows), share_of_best(device, run, 0, kWindows)));
    CHECK(early <= 9.0);
    CHECK(late >= 12.0);
    CHECK(resizes(run, run.windows_to_choice + 1, kWindows) <= kWindows / 100);
    CHECK(share_of_best(device, run, 0, kWindows) >= 0.95);
    const bool is_said = std::ranges::any_of(run.decisions, [](const autotuner::Decision& decision) {
      return decision.reason.find("the gradient noise scale has moved from") != std::string::npos;
    });
    if (is_said) ++followed;
  }
  CHECK(followed >= 0.95 * kCases);
}

TEST_CASE("goodput: a constant noise scale with large measurement errors does not cause oscillation") {
  constexpr int kCases = 200;
  constexpr int kWindows = 3000;
  double searches = 0.0;
  double all = 0.0;
  double by_throughput = 0.0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SimulatedDevice device = rising_device();
    SimulatedDevice throughput_only = device;
    device.noise_scale = [=](int) { return std::exp2(static_cast<double>(seed % 8)); };
    device.gradient_dimensions = 3;  // the square of a mean gradient has a standard deviation of 80 %
    const SimulatedRun run = simulate(device, seed, kWindows);
    const int rested = resizes(run, run.windows_to_choice + 1, kWindows);
    CHECK(rested <= kWindows / 100);
    all += rested;
    const SimulatedRun other = simulate(throughput_only, seed, kWindows);
    by_throughput += resizes(other, other.windows_to_choice + 1, kWindows);
    searches += static_cast<double>(std::ranges::count_if(run.decisions, [](const autotuner::Decision& decision) {
      return decision.reason.find("the gradient noise scale has moved") != std::string::npos;
    }));
    CHECK(share_of_best(device, run, 500, kWindows) >= 0.90);
  }
  INFO(fmt::format("{:.2f} searches of a run for the noise scale's sake; resizes of a run {:.1f}, by throughput {:.1f}",
                   searches / kCases, all / kCases, by_throughput / kCases));
  CHECK(searches <= 0.5 * kCases);
  CHECK(all <= 1.5 * by_throughput);
}

TEST_CASE("goodput: a choice made before the noise scale was known is corrected soon") {
  SimulatedDevice device = rising_device();
  device.noise_scale = [](int) { return 1.0; };
  autotuner::Tuner tuner({}, device.space);
  std::vector<autotuner::Decision> decisions;
  const auto play = [&](int windows) {
    for (int window = 0; window < windows; ++window) {
      const int learners = tuner.present().learners;
      const auto examples = std::llround(1e6 * device.throughput(learners, 0));
      if (const auto decision = tuner.add(4 * learners, examples, 1.0)) decisions.push_back(*decision);
    }
  };
  tuner.set_efficiency({});
  play(200);
  REQUIRE_FALSE(tuner.searching());
  CHECK(tuner.present().learners >= 14);  // chosen by throughput
  CHECK(decisions.back().evidence.noise_scale == std::nullopt);
  CHECK(decisions.back().evidence.efficiency == std::nullopt);
  CHECK(decisions.back().reason.ends_with("; the gradient noise scale is not known yet, so examples/s decide"));
  decisions.clear();
  tuner.set_efficiency({1.0, 0.02, 1.0});
  play(1);
  REQUIRE(decisions.size() == 1);
  CHECK(decisions.front().reason.starts_with("the gradient noise scale is now known: 1 examples: "));
  play(100);
  CHECK_FALSE(tuner.searching());
  const double best = best_of(device, 0).throughput;
  CHECK(device.worth(tuner.present().learners, 0) >= 0.95 * best);
  CHECK(tuner.present().learners <= 8);
}

namespace {

// Feeds `windows` windows without noise at rate(current learners). Returns how often the number of learners changed.
int feed(autotuner::Tuner& tuner, int windows, const std::function<double(int learners)>& rate) {
  int changes = 0;
  for (int window = 0; window < windows; ++window) {
    const int learners = tuner.present().learners;
    const auto decision = tuner.add(4 * learners, std::llround(1e6 * rate(learners)), 1.0);
    if (decision && decision->action != autotuner::Action::kKeep) ++changes;
  }
  return changes;
}

}  // namespace

TEST_CASE("goodput: frequent jumps of the noise scale cause at most one resize per 100 windows") {
  const SimulatedDevice device = rising_device();
  const auto rate = [&](int learners) { return device.throughput(learners, 0); };
  autotuner::Tuner tuner({}, device.space);
  tuner.set_efficiency({1.0, 0.01, 1.0});
  feed(tuner, 100, rate);
  REQUIRE_FALSE(tuner.searching());
  int changes = 0;
  for (int jump = 0; jump < 50; ++jump) {
    tuner.set_efficiency({jump % 2 == 0 ? 100.0 : 1.0, 0.01, 1.0});
    changes += feed(tuner, 60, rate);
  }
  CHECK(changes > 0);
  CHECK(changes <= 50 * 60 / 100);
}

TEST_CASE("goodput: rates of the last search are corrected by the change of the current rate") {
  autotuner::Tuner tuner({}, {{2, 1}, {4, 1}});
  tuner.set_efficiency({32.0, 0.0, 32.0});
  feed(tuner, 100, [](int learners) { return learners == 2 ? 1.0 : 1.5; });
  REQUIRE(tuner.present().learners == 2);  // 64 / 96 against 1.5 x 64 / 160
  // All numbers become 6 % faster, which alone does not start a search.
  const auto faster = [](int learners) { return learners == 2 ? 1.06 : 1.59; };
  CHECK(feed(tuner, 400, faster) == 0);
  // 4 learners are now 8 % better: 1.5 x (100 + 64) / (100 + 128).
  tuner.set_efficiency({100.0, 0.0, 32.0});
  CHECK(feed(tuner, 100, faster) == 1);
  CHECK(tuner.present().learners == 4);
}

TEST_CASE("goodput: an intermediate number is tried once the noise scale has made it promising") {
  constexpr double kRates[] = {0.25, 0.5, 0.75, 1.0, 1.15, 1.3, 1.15, 1.0};
  const auto rate = [&](int learners) { return kRates[learners - 1]; };
  autotuner::Tuner tuner({}, autotuner::all_counts({1, 8}));
  // 5 learners could be 5/4 times as fast as 4, with 4.5/5.5 times the efficiency.
  tuner.set_efficiency({0.5, 0.01, 1.0});
  feed(tuner, 100, rate);
  REQUIRE_FALSE(tuner.searching());
  REQUIRE(tuner.present().learners == 4);
  REQUIRE(tuner.curve().points().size() == 3);  // 2, 4 and 8
  tuner.set_efficiency({100.0, 0.01, 1.0});
  feed(tuner, 350, rate);
  CHECK(tuner.present().learners == 6);
}

}  // namespace arbalest::tests
