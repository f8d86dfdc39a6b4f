#include "autotuner/throughput.h"

#include <cmath>
#include <random>

#include "autotuner/watch.h"
#include "tests/support/catch.h"

namespace arbalest::autotuner {

TEST_CASE("throughput: a window closes after its seconds and rounds, and the first windows are ignored") {
  WindowMeter meter({.seconds = 0.5, .rounds = 2, .settling = 1});
  meter.restart(4);
  CHECK_FALSE(meter.add(8, 800, 0.25));            // too short
  CHECK_FALSE(meter.add(8, 800, 0.25));            // a window for settling
  CHECK_FALSE(meter.add(4, 400, 0.75));            // long enough, but only one round
  CHECK(meter.add(4, 600, 0.25)->rate == 1000.0);  // 1,000 examples in one second
  CHECK(meter.add(8, 200, 0.5)->rate == 400.0);
  meter.add(8, 1'000'000, 0.25);
  meter.restart(2);
  CHECK_FALSE(meter.add(4, 100, 0.5));
  CHECK(meter.add(4, 100, 0.5)->rate == 200.0);  // does not count examples from before the restart
}

TEST_CASE("throughput: a window has the processor time of its parts, and says before that it is complete") {
  WindowMeter meter({.seconds = 0.5, .rounds = 1, .settling = 0});
  meter.restart(1);
  CHECK_FALSE(meter.completes(1, 10, 0.25));
  meter.add(1, 10, 0.25, {.seconds = 0.25, .used = 0.2, .lost = 0.0});
  CHECK(meter.completes(1, 10, 0.25));
  const Window window = *meter.add(1, 10, 0.25, {.seconds = 0.25, .used = 0.1, .lost = 0.1});
  CHECK(window.processor.used == Approx(0.3));
  CHECK(window.processor.lost_share() == Approx(0.25));
  CHECK_FALSE(meter.add(1, 10, 0.5)->processor.is_known());
}

TEST_CASE("throughput: without completed rounds or elapsed time there is no window") {
  WindowMeter meter({.seconds = 0.5, .rounds = 0, .settling = 0});
  meter.restart(1);
  CHECK_FALSE(meter.add(0, 0, 2.0));
  CHECK(meter.add(1, 10, 0.0)->rate == 5.0);
  WindowMeter without_clock({.seconds = 0.0, .rounds = 1, .settling = 0});
  without_clock.restart(1);
  CHECK_FALSE(without_clock.add(1, 10, 0.0));
}

TEST_CASE("throughput: the median, by hand") {
  CHECK(median({3.0}) == 3.0);
  CHECK(median({3.0, 1.0}) == 1.0);
  CHECK(median({5.0, 1.0, 9.0, 3.0, 7.0}) == 5.0);
  CHECK(median({1.0, 1.0, 1.0, 100.0, 100.0}) == 1.0);
}

TEST_CASE("throughput: the estimated noise and error agree with normally distributed windows") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(1.0, 0.1);
  constexpr int kProbes = 4000;
  for (const int windows : {5, 9, 40}) {
    NoiseEstimate noise;
    double squares = 0.0;
    for (int i = 0; i < kProbes; ++i) {
      std::vector<double> rates;
      for (int j = 0; j < windows; ++j) rates.push_back(1000.0 * normal(random));
      noise.add(rates);
      squares += std::pow(median(rates) / 1000.0 - 1.0, 2);
    }
    INFO(windows << " windows");
    const double estimate = noise.with({});
    CHECK(estimate == Approx(0.1).epsilon(0.05));
    CHECK(median_error(estimate, windows) == Approx(std::sqrt(squares / kProbes)).epsilon(0.10));
  }
}

TEST_CASE("throughput: the noise is relative to the throughput of each number of learners") {
  NoiseEstimate noise;
  noise.add(std::vector<double>{99.0, 100.0, 101.0});
  noise.add(std::vector<double>{990.0, 1000.0, 1010.0});
  CHECK(noise.with({}) < 0.03);
  CHECK(NoiseEstimate().with(std::vector<double>{100.0, 100.0, 100.0}) > 0.0);
}

TEST_CASE("throughput: a move lasts if two blocks of windows move alike, not if they move in opposite directions") {
  Watch watch(100.0);
  const auto last_of_block = [&](int windows, double rate) {
    for (int i = 1; i < windows; ++i) CHECK_FALSE(watch.add(rate));
    return watch.add(rate);
  };
  CHECK_FALSE(last_of_block(Watch::kBaselineWindows, 100.0));
  CHECK_FALSE(last_of_block(Watch::kBlockWindows, 150.0));
  CHECK_FALSE(last_of_block(Watch::kBlockWindows, 50.0));
  CHECK(last_of_block(Watch::kBlockWindows, 50.0).value() == 0.5);
}

}  // namespace arbalest::autotuner
