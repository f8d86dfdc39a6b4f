#include "autotuner/goodput.h"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "autotuner/devices_tuner.h"
#include "autotuner/search.h"
#include "tests/autotuner/simulated_device.h"
#include "tests/support/catch.h"

namespace arbalest::autotuner {
namespace {

Objective objective_of(double noise_scale, double error = 0.0) { return {{noise_scale, error, 32.0}, 1, 0}; }

Curve curve_of(const std::vector<std::pair<int, double>>& rates, double error = 0.001) {
  Curve curve;
  for (const auto& [count, rate] : rates) curve.set({{count, 1}, rate, error, 5});
  return curve;
}

}  // namespace

TEST_CASE("goodput: the efficiency of a mini-batch, by hand") {
  const Efficiency efficiency(96.0, 0.1, 32.0);
  CHECK(efficiency.of(1) == 1.0);
  CHECK(efficiency.of(4) == Approx((96.0 + 32.0) / (96.0 + 128.0)));
  CHECK(efficiency.of(1000) < 0.005);
  CHECK(Efficiency(0.0, 0.0, 32.0).of(8) == Approx(1.0 / 8.0));  // without noise one learner is enough
  CHECK(Efficiency(1e12, 0.0, 32.0).of(8) == Approx(1.0));
  CHECK(Efficiency().of(8) == 1.0);
  CHECK_FALSE(Efficiency().is_known());
  // Two devices with 3 learners each and one other learner make a round of seven.
  CHECK(Objective(efficiency, 2, 1).goodput({3, 1}, 700.0) == Approx(700.0 * 128.0 / (96.0 + 7 * 32.0)));
}

TEST_CASE("goodput: the error of an efficiency follows from the error of the noise scale") {
  const Efficiency efficiency(200.0, 0.01, 32.0);
  const auto ratio = [](double scale) {
    return Efficiency(scale, 0.0, 32.0).of(8) / Efficiency(scale, 0.0, 32.0).of(2);
  };
  const double difference = (ratio(202.0) - ratio(198.0)) / 2.0 / ratio(200.0);
  CHECK(efficiency.error_between(8, 2) == Approx(difference).epsilon(0.01));
  CHECK(efficiency.error_between(2, 8) == efficiency.error_between(8, 2));
  CHECK(efficiency.error_between(4, 4) == 0.0);
  CHECK(Efficiency().error_between(8, 2) == 0.0);
}

TEST_CASE("goodput: on logarithmic axes, efficiency is concave and falls by at most one octave per octave") {
  for (const double scale : {0.0, 1.0, 32.0, 500.0, 1e5}) {
    const Efficiency efficiency(scale, 0.0, 32.0);
    const auto slope = [&](int a, int b) {
      return std::log2(efficiency.of(b) / efficiency.of(a)) / std::log2(b * 1.0 / a);
    };
    for (int k = 2; k <= 64; ++k) {
      CHECK(slope(k, k + 1) <= 1e-12);
      CHECK(slope(k, k + 1) >= -1.0 - 1e-9);
      CHECK(slope(k, k + 1) <= slope(k - 1, k) + 1e-9);
    }
  }
}

TEST_CASE("goodput: if throughput has diminishing returns, no promise is too low") {
  const std::vector<Configuration> space = all_counts({1, 32});
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    // A curve that is concave on logarithmic axes, with slopes from 1 down to -1.
    const double peak = tests::uniform(random, 0.0, 5.0);
    const double curvature = tests::uniform(random, 0.02, 0.1);
    const auto rate = [&](int learners) {
      const double x = std::log2(static_cast<double>(learners)) - peak;
      return std::exp2(-curvature * x * x);
    };
    const Objective objective = objective_of(32.0 * std::exp2(tests::uniform(random, -2.0, 8.0)));
    Curve curve;
    for (const int count : {2, 4, 8, 16}) curve.set({{count, 1}, rate(count), 0.0, 5});
    for (std::size_t left = 0; left < 4; ++left) {
      const auto promise = promise_right_of(curve, left, space, objective);
      REQUIRE(promise);
      const int above = 2 << left;
      const int below = left == 3 ? 33 : 4 << left;
      for (int count = above + 1; count < below; ++count) {
        CHECK(objective.goodput({count, 1}, rate(count)) <= promise->goodput * (1.0 + 1e-9));
      }
    }
  }
}

TEST_CASE("goodput: the best, the choice and the end of a search are decided by goodput") {
  const Curve curve = curve_of({{1, 100.0}, {2, 190.0}, {4, 340.0}, {8, 500.0}});
  CHECK(curve.best().configuration.learners == 8);
  // 100, 190 (64 + 32) / (64 + 64) = 142.5, 340 x 96 / 192 = 170, 500 x 96 / 320 = 150
  CHECK(curve.best(objective_of(64.0)).configuration.learners == 4);
  CHECK(choose(curve, {}, {.objective = objective_of(64.0)}).configuration.learners == 4);
  CHECK(choose(curve, {}, {}).configuration.learners == 8);
  // Without noise only one learner is useful, and larger numbers are not tried.
  const std::vector<Configuration> space = all_counts({1, 8});
  const SearchOptions no_noise{.objective = objective_of(0.0)};
  CHECK_FALSE(next_probe(space, octaves_of(space), curve_of({{1, 100.0}, {2, 150.0}}), Extent::kEverywhere, no_noise));
  CHECK(next_probe(space, octaves_of(space), curve_of({{1, 100.0}, {2, 150.0}}), Extent::kEverywhere, {}));
}

TEST_CASE("goodput: the current number changes only if the other one's efficiency is certainly good enough") {
  const Curve curve = curve_of({{2, 100.0}, {4, 150.0}});
  // 150 x (64 + 64) / (64 + 128) = 100; with a scale of 128: 150 x 192 / 256 = 112.5.
  CHECK(choose(curve, 2, {.objective = objective_of(128.0)}).configuration.learners == 4);
  CHECK(choose(curve, 2, {.objective = objective_of(128.0, 0.6)}).configuration.learners == 2);
  CHECK(choose(curve, 4, {.objective = objective_of(64.0)}).configuration.learners == 4);
}

TEST_CASE("goodput: updates of the noise scale, and when it counts as changed") {
  const Efficiency nothing;
  const Efficiency known = learned_from({.scale = 100.0, .error = 0.05}, nothing, 32.0);
  CHECK(known.noise_scale() == 100.0);
  CHECK_FALSE(known.is_bound());
  // If noise hides the gradient, the old scale stays, or rises to its lower bound.
  CHECK(learned_from({.least = 60.0}, known, 32.0).noise_scale() == 100.0);
  const Efficiency bound = learned_from({.least = 600.0}, known, 32.0);
  CHECK(bound.noise_scale() == 600.0);
  CHECK(bound.is_bound());
  CHECK_FALSE(learned_from({}, nothing, 32.0).is_known());

  CHECK_FALSE(known.has_moved_to(known));
  CHECK_FALSE(known.has_moved_to({110.0, 0.05, 32.0}));
  CHECK(known.has_moved_to({200.0, 0.05, 32.0}));
  CHECK(known.has_moved_to({40.0, 0.05, 32.0}));
  CHECK_FALSE(known.has_moved_to({200.0, 0.5, 32.0}));                       // not certain enough
  CHECK_FALSE(Efficiency(1.0, 0.01, 32.0).has_moved_to({4.0, 0.01, 32.0}));  // small compared with a mini-batch
  CHECK(nothing.has_moved_to(known));
  CHECK_FALSE(known.has_moved_to(nothing));
}

TEST_CASE("goodput: the efficiency of several devices counts the learners of all devices") {
  // The first kind has its turn while the other kind runs three learners.
  DevicesTuner tuner({}, {{1, all_counts({1, 16})}, {1, all_counts({1, 16})}}, {2, 3});
  tuner.set_efficiency({64.0, 0.0, 32.0});
  CHECK(tuner.tuner().objective().efficiency({2, 1}) == Approx(96.0 / (64.0 + 5 * 32.0)));
  std::optional<DevicesDecision> decision;
  while (!decision || !decision->step.done) {
    decision = tuner.add(1'000'000, 1'000'000LL * tuner.present()[0].learners, 1.0);
  }
  const int first = tuner.present()[0].learners;
  tuner.add(1'000'000, 1'000'000, 1.0);  // the next turn
  CHECK(tuner.tuner().objective().efficiency({3, 1}) == Approx(96.0 / (64.0 + (first + 3) * 32.0)));
}

TEST_CASE("goodput: decisions have efficiency and noise scale, and mention them in the reason") {
  Tuner tuner({}, all_counts({1, 4}));
  tuner.set_efficiency({32.0, 0.01, 32.0});
  std::optional<Decision> decision;
  while (!decision) decision = tuner.add(8, 1000, 1.0);
  CHECK(decision->reason ==
        "2 learners reached 1000 examples/s of efficiency 0.67 (goodput 667): trying the next octave, 4 learners");
  CHECK(decision->evidence.rate == 1000.0);
  CHECK(decision->evidence.efficiency.value() == Approx(2.0 / 3.0));
  CHECK(decision->evidence.noise_scale == 32.0);
  CHECK(decision->evidence.best_goodput().value() == Approx(2000.0 / 3.0));
}

TEST_CASE("goodput: an invalid noise scale is refused") {
  CHECK_THROWS_AS(Efficiency(-1.0, 0.0, 32.0), std::invalid_argument);
  CHECK_THROWS_AS(Efficiency(1.0, -0.1, 32.0), std::invalid_argument);
  CHECK_THROWS_AS(Efficiency(1.0, 0.0, 0.0), std::invalid_argument);
  CHECK_THROWS_AS(Efficiency(std::numeric_limits<double>::quiet_NaN(), 0.0, 32.0), std::invalid_argument);
  CHECK_THROWS_AS(Efficiency(std::numeric_limits<double>::infinity(), 0.0, 32.0), std::invalid_argument);
}

}  // namespace arbalest::autotuner
