#include "autotuner/search.h"

#include <cmath>

#include "tests/support/catch.h"

namespace arbalest::autotuner {
namespace {

std::vector<int> learners(std::span<const Configuration> space) {
  std::vector<int> counts;
  for (const Configuration& count : space) counts.push_back(count.learners);
  return counts;
}

Curve curve_of(const std::vector<std::pair<int, double>>& rates, double error = 0.001) {
  Curve curve;
  for (const auto& [count, rate] : rates) curve.set({{count, 1}, rate, error, 5});
  return curve;
}

std::optional<Probe> next(const Curve& curve, int most, Extent extent = Extent::kEverywhere) {
  const std::vector<Configuration> space = all_counts({1, most});
  return next_probe(space, octaves_of(space), curve, extent, {});
}

}  // namespace

TEST_CASE("search: octaves of a space") {
  CHECK(learners(octaves_of(all_counts({1, 16}))) == std::vector{1, 2, 4, 8, 16});
  CHECK(learners(octaves_of(all_counts({1, 12}))) == std::vector{1, 2, 4, 8, 12});
  CHECK(learners(octaves_of(all_counts({3, 7}))) == std::vector{3, 6, 7});
  CHECK(learners(octaves_of(all_counts({5, 5}))) == std::vector{5});
  CHECK(learners(octaves_of(counts_of_cores({1, 12}, 12))) == std::vector{1, 2, 4, 6, 12});
  CHECK(learners(octaves_of(counts_of_cores({1, 7}, 7))) == std::vector{1, 2, 3, 7});
}

TEST_CASE("search: octaves through a given number of the space") {
  CHECK(learners(octaves_of(all_counts({1, 16}), {6, 1})) == std::vector{1, 2, 3, 6, 12, 16});
  CHECK(learners(octaves_of(all_counts({1, 16}), {16, 1})) == std::vector{1, 2, 4, 8, 16});
  CHECK(learners(octaves_of(all_counts({3, 7}), {7, 1})) == std::vector{3, 4, 7});
  CHECK(learners(octaves_of(all_counts({5, 5}), {5, 1})) == std::vector{5});
  CHECK(learners(octaves_of(counts_of_cores({1, 24}, 12), {12, 1})) == std::vector{1, 2, 3, 6, 12, 24});
  CHECK(learners(octaves_of(counts_of_cores({1, 7}, 7), {7, 1})) == std::vector{1, 2, 3, 7});
}

TEST_CASE("search: the octaves of any space fit into the limit of probes") {
  for (int most = 1; most <= 256; ++most) {
    const std::vector<Configuration> all = all_counts({1, most});
    CHECK(std::ssize(octaves_of(all)) <= probe_limit(all));
    const std::vector<Configuration> cores = counts_of_cores({1, most}, most);
    CHECK(std::ssize(octaves_of(cores)) <= probe_limit(cores) + 1);  // the first octave is often not worth a probe
    for (const Configuration& count : all) CHECK(std::ssize(octaves_of(all, count)) <= probe_limit(all));
    for (const Configuration& count : cores) CHECK(std::ssize(octaves_of(cores, count)) <= probe_limit(cores) + 1);
  }
  CHECK(probe_limit(all_counts({1, 16})) == 6);
  CHECK(probe_limit(all_counts({1, 17})) == 8);
  CHECK(probe_limit(all_counts({1, 32})) == 8);
  CHECK(probe_limit(all_counts({1, 64})) == 9);
}

TEST_CASE("search: with diminishing returns, the promised peak is where the lines meet") {
  // A tent with its peak of 1,200 at 12 learners and slopes 1 and -1. Both lines coincide with it.
  const Curve curve = curve_of({{4, 400.0}, {8, 800.0}, {16, 900.0}, {32, 450.0}});
  const std::vector<Configuration> space = all_counts({1, 32});
  const auto promise = promise_right_of(curve, 1, space);
  REQUIRE(promise);
  CHECK(promise->configuration.learners == 12);
  CHECK(promise->goodput == Approx(1200.0));
  // Between 4 and 8 nothing is above the chord.
  CHECK(promise_right_of(curve, 0, space)->goodput < 800.0);
  // 32 learners are the largest number.
  CHECK_FALSE(promise_right_of(curve, 3, space));
}

TEST_CASE("search: without a chord beyond, or with one into a valley, the promise assumes the steepest slopes") {
  const std::vector<Configuration> space = all_counts({1, 32});
  // 4 and 8 are equal and nothing more is known. The promise goes up with slope 1 and down with slope -1, for half an
  // octave each.
  CHECK(promise_right_of(curve_of({{4, 100.0}, {8, 100.0}}), 0, space)->goodput == Approx(100.0 * 8 / 6));
  // The chord from 8 down to 16 is flat because the valley is before 16.
  const double with_valley =
      promise_right_of(curve_of({{4, 100.0}, {8, 100.0}, {16, 90.0}, {32, 100.0}}), 0, space)->goodput;
  const double without =
      promise_right_of(curve_of({{4, 100.0}, {8, 100.0}, {16, 90.0}, {32, 80.0}}), 0, space)->goodput;
  CHECK(with_valley == Approx(100.0 * 8 / 6));
  CHECK(without < 110.0);
}

TEST_CASE("search: below a number that did not fit, the promise extends to the largest that may fit") {
  const auto promise = promise_right_of(curve_of({{4, 100.0}, {8, 200.0}}), 1, all_counts({1, 15}));
  REQUIRE(promise);
  CHECK(promise->goodput == Approx(375.0));
  CHECK(promise->configuration.learners == 12);  // halfway
  CHECK_FALSE(promise_right_of(curve_of({{4, 100.0}, {8, 200.0}}), 1, all_counts({1, 8})));
}

TEST_CASE("search: tries octave after octave, then one learner if it is promising, then numbers between") {
  CHECK(next(curve_of({{2, 100.0}}), 16)->configuration.learners == 4);
  CHECK(next(curve_of({{2, 100.0}, {4, 150.0}, {8, 180.0}}), 16)->configuration.learners == 16);
  // The search looks for a second peak although 4 are slower than 2 ...
  CHECK(next(curve_of({{2, 100.0}, {4, 80.0}}), 16)->configuration.learners == 8);
  // ... but not where a second peak could not be higher: 8 learners reach at most twice the 40 of 4 learners.
  const auto lowest = next(curve_of({{2, 100.0}, {4, 40.0}}), 8);
  REQUIRE(lowest);
  CHECK(lowest->kind == ProbeKind::kLowest);
  CHECK(lowest->configuration.learners == 1);
  // One learner is not tried if 2 are slower than 4.
  const auto between = next(curve_of({{2, 100.0}, {4, 200.0}, {8, 180.0}}), 8);
  REQUIRE(between);
  CHECK(between->kind == ProbeKind::kBetween);
  CHECK(between->promise > 1.03 * 200.0);
  // On a plateau there is nothing more to find.
  CHECK_FALSE(next(curve_of({{1, 100.0}, {2, 100.0}, {4, 100.0}, {8, 100.0}}), 8));
  CHECK_FALSE(next(curve_of({{1, 100.0}}), 1));
}

TEST_CASE("search: from a guess in the middle, tries all octaves, first those above, then those below") {
  const auto above = next(curve_of({{4, 100.0}}), 16);
  REQUIRE(above);
  CHECK(above->kind == ProbeKind::kAbove);
  CHECK(above->configuration.learners == 8);
  CHECK(next(curve_of({{4, 100.0}, {8, 80.0}}), 16)->configuration.learners == 16);
  const auto below = next(curve_of({{4, 100.0}, {8, 80.0}, {16, 60.0}}), 16);
  REQUIRE(below);
  CHECK(below->kind == ProbeKind::kBelow);
  CHECK(below->configuration.learners == 2);
  // 16 learners reach at most twice the rate of 8, and 1 learner at most that of 2. Neither would be enough.
  CHECK(next(curve_of({{4, 100.0}, {8, 49.0}}), 16)->configuration.learners == 2);
  CHECK_FALSE(next(curve_of({{2, 49.0}, {4, 100.0}, {8, 49.0}}), 16));
  // 1 learner is the only number below, and nothing shows yet that it is not worth a probe.
  CHECK(next(curve_of({{2, 100.0}}), 2)->kind == ProbeKind::kBelow);
}

TEST_CASE("search: around a guess, tries only the octaves next to the best") {
  CHECK(next(curve_of({{6, 100.0}}), 16, Extent::kAround)->configuration.learners == 4);
  CHECK(next(curve_of({{4, 50.0}, {6, 100.0}}), 16, Extent::kAround)->configuration.learners == 8);
  CHECK(next(curve_of({{4, 50.0}, {6, 100.0}, {8, 120.0}}), 16, Extent::kAround)->configuration.learners == 16);
  // 1 and 16 are not next to the best number.
  CHECK_FALSE(next(curve_of({{2, 98.0}, {4, 100.0}, {8, 98.0}}), 16, Extent::kAround));
}

TEST_CASE("search: chooses the fewest learners within the hysteresis, if this is certain") {
  CHECK(choose(curve_of({{2, 98.0}, {4, 100.0}, {8, 99.0}}), {}, {}).configuration.learners == 2);
  CHECK(choose(curve_of({{2, 96.0}, {4, 100.0}, {8, 99.0}}), {}, {}).configuration.learners == 4);
  CHECK(choose(curve_of({{2, 98.0}, {4, 100.0}, {8, 99.0}}, 0.02), {}, {}).configuration.learners == 4);
  CHECK(choose(curve_of({{2, 50.0}, {4, 70.0}, {8, 80.0}}), {}, {}).configuration.learners == 8);
}

TEST_CASE("search: the current number changes only for one that is certainly better") {
  const Curve curve = curve_of({{4, 100.0}, {8, 102.0}});
  CHECK(choose(curve, 4, {}).configuration.learners == 4);
  CHECK(choose(curve, 8, {}).configuration.learners == 8);  // also if fewer learners are as good
  CHECK(choose(curve_of({{4, 100.0}, {8, 105.0}}), 4, {}).configuration.learners == 8);
  CHECK(choose(curve_of({{4, 100.0}, {8, 105.0}}, 0.03), 4, {}).configuration.learners == 4);
}

}  // namespace arbalest::autotuner
