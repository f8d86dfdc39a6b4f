// Windows that other programs disturb, and candidates that are compared in turns.
#include "autotuner/comparison.h"

#include <cmath>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "autotuner/explanation.h"
#include "autotuner/tuner.h"
#include "tests/support/catch.h"

namespace arbalest::autotuner {

namespace {

// A window of 0.1 s on one core that lost a part of its processor time.
Window window_of(double rate, double lost_share = 0.0) {
  return {rate, {.seconds = 0.1, .used = 0.1 * (1.0 - lost_share), .lost = 0.1 * lost_share}};
}

// Gives a comparison windows of these rates until it is done. `lost`: the part that every window loses.
int play(Comparison& comparison, const std::vector<double>& rates, double noise, double lost = 0.0) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(1.0, noise);
  int windows = 0;
  while (const auto next = comparison.next()) {
    while (!comparison.add(window_of(rates[*next] * normal(random), lost))) ++windows;
    ++windows;
    REQUIRE(windows < 10'000);
  }
  return windows;
}

std::vector<std::vector<Window>> nothing_known(std::size_t candidates) {
  return std::vector<std::vector<Window>>(candidates);
}

}  // namespace

TEST_CASE("quiet windows: a disturbed window is left out until the limit, and then the machine is busy") {
  QuietWindows quiet({.most_lost = 0.05, .most_repeats = 2});
  CHECK(quiet.counts(window_of(1.0, 0.04)));
  CHECK(quiet.counts({1.0, {}}));  // unknown
  CHECK_FALSE(quiet.counts(window_of(1.0, 0.06)));
  quiet.begin_measurement();
  CHECK_FALSE(quiet.counts(window_of(1.0, 0.5)));
  CHECK_FALSE(quiet.counts(window_of(1.0, 0.5)));
  CHECK(quiet.is_quiet());
  CHECK(quiet.counts(window_of(1.0, 0.5)));
  CHECK_FALSE(quiet.is_quiet());
  CHECK(quiet.left_out() == 3);
  CHECK(quiet.all().lost_share() == Approx((0.04 + 0.06 + 1.5) / 5.0));
  quiet.begin_measurement();  // the machine stays busy for this search
  CHECK(quiet.counts(window_of(1.0, 0.5)));
  quiet.begin_search();
  CHECK(quiet.is_quiet());
  CHECK_FALSE(quiet.counts(window_of(1.0, 0.5)));
}

TEST_CASE("windows: examples per processor second, by hand") {
  // 1,000 examples/s for 0.5 s are 500 examples, in 0.8 processor seconds.
  CHECK(Window{1000.0, {.seconds = 0.5, .used = 0.8, .lost = 0.2}}.per_processor_second().value() == Approx(625.0));
  CHECK_FALSE(Window{1000.0, {}}.per_processor_second().has_value());
}

TEST_CASE("tuner: disturbed windows are measured again, so that a search ends as on a quiet machine") {
  TunerOptions options;
  options.window.settling = 0;
  options.quiet.most_repeats = 40;
  Tuner tuner(options, {{1, 2}, {2, 1}}, 1);
  int windows = 0;
  std::optional<Decision> decision;
  while (tuner.searching()) {
    const int learners = tuner.present().learners;
    // Two learners are 1.2 times as fast. In two of three windows another program halves what one learner does.
    const bool is_disturbed = windows % 3 != 0;
    const double rate = learners == 2 ? 1200.0 : is_disturbed ? 500.0 : 1000.0;
    decision = tuner.add(4L * learners, std::llround(rate), 1.0,
                         {.seconds = 1.0, .used = is_disturbed ? 1.0 : 2.0, .lost = is_disturbed ? 1.0 : 0.0});
    REQUIRE(++windows < 1000);
  }
  CHECK(tuner.curve().find(1)->rate == Approx(1000.0));
  CHECK(tuner.curve().find(2)->rate == Approx(1200.0));
  CHECK(tuner.quiet().is_quiet());
  CHECK(tuner.quiet().left_out() > 10);
  CHECK(decision->evidence.disturbed_windows == tuner.quiet().left_out());
  CHECK_THAT(decision->reason, !ContainsSubstring("busy"));
}

TEST_CASE("tuner: where the machine does not become quiet, the search ends all the same and says so") {
  TunerOptions options;
  options.window.settling = 0;
  Tuner tuner(options, {{1, 2}, {2, 1}}, 1);
  int windows = 0;
  std::optional<Decision> decision;
  while (tuner.searching()) {
    const int learners = tuner.present().learners;
    decision = tuner.add(4L * learners, learners * 1000, 1.0, {.seconds = 1.0, .used = 1.4, .lost = 0.6});
    REQUIRE(++windows < 200);
  }
  CHECK_FALSE(tuner.quiet().is_quiet());
  CHECK(tuner.quiet().left_out() == options.quiet.most_repeats);
  CHECK(decision->evidence.lost.value() == Approx(0.3));
  CHECK_THAT(decision->reason,
             ContainsSubstring("the machine was busy: other programs took 30 % of the processor time"));
}

TEST_CASE("tuner: a short disturbance while it watches is passed over, a lasting one is followed") {
  TunerOptions options;
  options.window.settling = 0;
  Tuner tuner(options, {{1, 2}, {2, 1}}, 2);
  const auto window = [&](double rate, double lost) {
    return tuner.add(4L * tuner.present().learners, std::llround(rate), 1.0,
                     {.seconds = 1.0, .used = 2.0 - lost, .lost = lost});
  };
  while (tuner.searching()) window(tuner.present().learners * 1000.0, 0.0);
  REQUIRE(tuner.present().learners == 2);
  for (int i = 0; i < 400; ++i) window(2000.0, 0.0);
  // Bursts as long as the limit change nothing, however often they come.
  for (int burst = 0; burst < 20; ++burst) {
    for (int i = 0; i < options.quiet.most_repeats; ++i) CHECK_FALSE(window(500.0, 1.0).has_value());
    CHECK_FALSE(window(2000.0, 0.0).has_value());
  }
  bool is_followed = false;
  for (int i = 0; i < 200 && !is_followed; ++i) is_followed = window(500.0, 1.0).has_value();
  CHECK(is_followed);
}

TEST_CASE("comparison: there are as many windows as the error needs, up to the limit") {
  ComparisonOptions options;
  for (const auto& [noise, least, most] : std::vector<std::tuple<double, int, int>>{{0.002, 12, 12}, {0.04, 20, 60}}) {
    Comparison comparison(options, nothing_known(2));
    play(comparison, {1000.0, 1020.0}, noise);
    for (const std::size_t i : {0U, 1U}) {
      const Measured measured = *comparison.measured(i);
      CAPTURE(noise, measured.windows, measured.error);
      CHECK(measured.windows >= least);
      CHECK(measured.windows <= most);
      CHECK((measured.error <= options.precision || measured.windows == options.most_windows));
      CHECK(measured.rate == Approx(i == 0 ? 1000.0 : 1020.0).epsilon(4.0 * measured.error));
    }
  }
  Comparison noisy(options, nothing_known(2));
  play(noisy, {1000.0, 1020.0}, 0.3);
  CHECK(noisy.measured(0)->windows == options.most_windows);
  CHECK(noisy.largest_error() > options.precision);
}

TEST_CASE("comparison: candidates far behind the best get few windows, and a dropped one none") {
  Comparison comparison({}, nothing_known(3));
  comparison.drop(2);
  play(comparison, {500.0, 1000.0}, 0.04);
  CHECK(comparison.measured(0)->windows == 12);
  CHECK(comparison.measured(1)->windows > 12);
  CHECK_FALSE(comparison.measured(2).has_value());
}

TEST_CASE("comparison: candidates take turns, so a drift of the machine meets all of them") {
  Comparison comparison({}, nothing_known(2));
  std::vector<std::size_t> order;
  double speed = 1.0;
  while (const auto next = comparison.next()) {
    order.push_back(*next);
    while (!comparison.add(window_of(1000.0 * speed))) speed *= 0.999;  // both are alike
    REQUIRE(order.size() < 100);
  }
  for (std::size_t i = 0; i + 1 < order.size(); ++i) CHECK(order[i] != order[i + 1]);
  CHECK(comparison.measured(0)->rate == Approx(comparison.measured(1)->rate).epsilon(0.01));
}

TEST_CASE("comparison: windows of a search are pooled with the new ones, which outweigh a state that has passed") {
  std::vector<std::vector<Window>> known(3);
  for (int i = 0; i < 12; ++i) known[0].push_back(window_of(1000.0));
  for (int i = 0; i < 30; ++i) known[1].push_back(window_of(1100.0));
  Comparison comparison({}, std::move(known));
  play(comparison, {1000.0, 1000.0, 1000.0}, 0.001);
  CHECK(comparison.measured(0)->windows == 24);
  CHECK(comparison.measured(1)->windows > 24);
  CHECK(comparison.measured(2)->windows == 12);
  for (const std::size_t i : {0U, 1U, 2U}) CHECK(comparison.measured(i)->rate == Approx(1000.0).epsilon(0.01));
}

TEST_CASE("comparison: on a machine that stays busy it ends, and has the ratio by processor time") {
  ComparisonOptions options;
  Comparison comparison(options, nothing_known(2));
  // By the clock the second is three times as fast; each image takes 1.2 times as long on the first.
  while (const auto next = comparison.next()) {
    const Window window = *next == 0 ? Window{400.0, {.seconds = 0.1, .used = 0.08, .lost = 0.12}}
                                     : Window{1200.0, {.seconds = 0.1, .used = 0.2, .lost = 0.02}};
    while (!comparison.add(window)) continue;
  }
  CHECK_FALSE(comparison.quiet().is_quiet());
  CHECK(comparison.quiet().left_out() == options.quiet.most_repeats);
  CHECK(comparison.measured(1)->rate / comparison.measured(0)->rate == Approx(3.0));
  CHECK(comparison.measured(1)->per_processor_second / comparison.measured(0)->per_processor_second == Approx(1.2));
}

TEST_CASE("comparison: the first that is surely near the best is chosen, and its shortfall is measured") {
  const std::vector<Contender> contenders = {{900.0, 0.001}, {985.0, 0.001}, {1000.0, 0.001}};
  CHECK(choose(contenders, 0.03) == 1);
  CHECK(choose(contenders, 0.01) == 2);
  const Shortfall of_second = shortfall(contenders, 1);
  CHECK(of_second.fraction == Approx(0.015));
  CHECK(of_second.error == Approx(0.985 * std::sqrt(2e-6)));
  CHECK(of_second.at_most() == Approx(0.015 + 2 * 0.985 * std::sqrt(2e-6)));
  // The best: how much better the rival may be, at two standard errors.
  CHECK(shortfall(contenders, 2).at_most() == Approx(0.0).margin(1e-9));
  const std::vector<Contender> close = {{1000.0, 0.01}, {990.0, 0.01}};
  CHECK(shortfall(close, 0).fraction == 0.0);
  CHECK(shortfall(close, 0).at_most() == Approx(2.0 * 0.01 * std::sqrt(2.0) - 0.01));
  // An inexact one is not surely near.
  CHECK(choose(std::vector<Contender>{{985.0, 0.02}, {1000.0, 0.02}}, 0.03) == 1);
}

}  // namespace arbalest::autotuner
