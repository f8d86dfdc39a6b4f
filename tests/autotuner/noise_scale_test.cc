#include "autotuner/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "tests/autotuner/gradient_samples.h"
#include "tests/support/catch.h"

namespace arbalest::autotuner {
namespace {

constexpr double kForever = 1e15;  // examples

using Vector = std::vector<double>;

double square(const Vector& v) {
  double sum = 0.0;
  for (const double x : v) sum += x * x;
  return sum;
}

// Gradients equal to `center` plus noise. In direction i the noise of one example has the standard deviation
// deviation[i].
struct Gaussian {
  Vector center;
  Vector deviation;

  static Gaussian draw(std::mt19937_64& random) {
    Gaussian model;
    std::normal_distribution<double> normal;
    for (int i = 0; i < 48; ++i) {
      model.center.push_back(0.1 * normal(random));
      model.deviation.push_back(std::exp(normal(random)));  // deviations differ widely between directions
    }
    return model;
  }
  double noise() const { return square(deviation); }
  double signal() const { return square(center); }

  Vector gradient(double mini_batch, std::mt19937_64& random) const {
    std::normal_distribution<double> normal;
    Vector g = center;
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += deviation[i] / std::sqrt(mini_batch) * normal(random);
    return g;
  }
};

GradientSample sample_of(const std::vector<Vector>& gradients, double mini_batch) {
  GradientSample sample{.gradients = static_cast<int>(gradients.size()), .mini_batch = mini_batch};
  Vector mean(gradients.front().size());
  for (const Vector& g : gradients) {
    sample.square_mean += square(g) / sample.gradients;
    for (std::size_t i = 0; i < g.size(); ++i) mean[i] += g[i] / sample.gradients;
  }
  sample.mean_square = square(mean);
  return sample;
}

GradientSample round_of(const Gaussian& model, int learners, double mini_batch, std::mt19937_64& random) {
  std::vector<Vector> gradients;
  for (int j = 0; j < learners; ++j) gradients.push_back(model.gradient(mini_batch, random));
  return sample_of(gradients, mini_batch);
}

GradientSample scaled(GradientSample sample, double rounds) {
  sample.square_mean *= rounds;
  sample.mean_square *= rounds;
  sample.rounds = static_cast<std::int64_t>(rounds);
  return sample;
}

}  // namespace

TEST_CASE("noise scale: unbiased for Gaussian gradients with any number of learners") {
  constexpr int kSamples = 4000;
  constexpr double kMiniBatch = 16.0;
  for (const int learners : {2, 4, 16}) {
    std::mt19937_64 random(static_cast<std::uint64_t>(learners));
    const Gaussian model = Gaussian::draw(random);
    NoiseScale scale(kForever);
    double noise_squares = 0.0;
    double signal_squares = 0.0;
    for (int i = 0; i < kSamples; ++i) {
      const GradientSample sample = round_of(model, learners, kMiniBatch, random);
      scale.add(sample);
      const double k = learners;
      const double noise = kMiniBatch * k / (k - 1.0) * (sample.square_mean - sample.mean_square);
      const double signal = (k * sample.mean_square - sample.square_mean) / (k - 1.0);
      noise_squares += std::pow(noise - model.noise(), 2);
      signal_squares += std::pow(signal - model.signal(), 2);
    }
    const NoiseScaleEstimate estimate = scale.estimate();
    const double noise_error = std::sqrt(noise_squares) / kSamples;
    const double signal_error = std::sqrt(signal_squares) / kSamples;
    INFO(fmt::format("k = {}: S {:.2f} +- {:.2f} of {:.2f}, |G|^2 {:.4f} +- {:.4f} of {:.4f}", learners, estimate.noise,
                     noise_error, model.noise(), estimate.signal, signal_error, model.signal()));
    CHECK(estimate.samples == Approx(kSamples));
    CHECK(std::abs(estimate.noise - model.noise()) < 3.5 * noise_error);
    CHECK(std::abs(estimate.signal - model.signal()) < 3.5 * signal_error);
    CHECK(noise_error < 0.03 * model.noise());
    REQUIRE(estimate.scale);
    const double truth = model.noise() / model.signal();
    CHECK(std::abs(*estimate.scale - truth) < 3.5 * estimate.error * truth);
    CHECK(estimate.error < 0.5);
  }
}

TEST_CASE("noise scale: the standard error equals the standard deviation over repetitions") {
  constexpr int kRepetitions = 400;
  const tests::GradientModel model{.signal = 1.0, .noise = 100.0};
  for (const int learners : {2, 8}) {
    double squares = 0.0;
    double errors = 0.0;
    for (std::uint64_t seed = 1; seed <= kRepetitions; ++seed) {
      std::mt19937_64 random(seed);
      NoiseScale scale(kForever);
      for (int i = 0; i < 200; ++i) scale.add(tests::draw_sample(model, learners, 16.0, 2, random));
      const NoiseScaleEstimate estimate = scale.estimate();
      REQUIRE(estimate.scale);
      squares += std::pow(*estimate.scale / 100.0 - 1.0, 2);
      errors += estimate.error;
    }
    INFO("k = " << learners);
    CHECK(errors / kRepetitions == Approx(std::sqrt(squares / kRepetitions)).epsilon(0.15));
  }
}

TEST_CASE("noise scale: the two numbers by hand") {
  NoiseScale scale(kForever);
  // Gradients (3, 1) and (1, 3): mean square 10, mean (2, 2) of square 8.
  const GradientSample sample = sample_of({{3.0, 1.0}, {1.0, 3.0}}, 5.0);
  CHECK(sample.square_mean == 10.0);
  CHECK(sample.mean_square == 8.0);
  for (int i = 0; i < 7; ++i) scale.add(sample);
  CHECK_FALSE(scale.estimate().scale);  // too few samples
  CHECK(scale.estimate().least == 0.0);
  scale.add(scaled(sample, 1.0));
  const NoiseScaleEstimate estimate = scale.estimate();
  CHECK(estimate.noise == Approx((10.0 - 8.0) / (1.0 / 5.0 - 1.0 / 10.0)));
  CHECK(estimate.signal == Approx((10.0 * 8.0 - 5.0 * 10.0) / (10.0 - 5.0)));
  CHECK(estimate.scale.value() == Approx(20.0 / 6.0));
  CHECK(estimate.error == Approx(0.0).margin(1e-6));
}

TEST_CASE("noise scale: a sample of several rounds counts as this number of rounds") {
  std::mt19937_64 random(3);
  const tests::GradientModel model{.signal = 1.0, .noise = 50.0};
  NoiseScale one_by_one(kForever);
  NoiseScale together(kForever);
  for (int i = 0; i < 50; ++i) {
    GradientSample sum{.gradients = 4, .mini_batch = 8.0, .rounds = 0};
    for (int round = 0; round <= i % 3; ++round) {
      const GradientSample sample = tests::draw_sample(model, 4, 8.0, 1, random);
      one_by_one.add(sample);
      ++sum.rounds;
      sum.square_mean += sample.square_mean;
      sum.mean_square += sample.mean_square;
    }
    together.add(sum);
  }
  CHECK(together.estimate().noise == Approx(one_by_one.estimate().noise));
  CHECK(together.estimate().signal == Approx(one_by_one.estimate().signal));
  CHECK(together.estimate().samples < one_by_one.estimate().samples);
}

TEST_CASE("noise scale: old samples are forgotten by examples, not by calls") {
  const auto sample = [](double noise, std::int64_t examples) {
    return GradientSample{.gradients = 2,
                          .mini_batch = 1.0,
                          .square_mean = 1.0 + noise,
                          .mean_square = 1.0 + noise / 2.0,
                          .examples = examples};
  };
  // S changes from 10 to 30 after 100 samples, followed by 100 more. The second case has half as many samples with
  // twice the examples between them.
  const auto after = [&](int samples, std::int64_t examples) {
    NoiseScale scale(10'000.0);
    for (int i = 0; i < samples; ++i) scale.add(sample(10.0, examples));
    for (int i = 0; i < samples; ++i) scale.add(sample(30.0, examples));
    return scale.estimate().noise;
  };
  const double often = after(100, 100);
  CHECK(often == Approx(after(50, 200)).epsilon(0.01));
  // One time constant before and one after the change, with weights e^-(examples since): the old fraction is
  // 1 / (1 + e).
  CHECK(often == Approx(30.0 - 20.0 / (1.0 + std::exp(1.0))));
  CHECK(after(1000, 100) == Approx(30.0).epsilon(0.001));
}

TEST_CASE("noise scale: a gradient hidden by noise leaves the scale unknown and gives a lower bound") {
  const tests::GradientModel model{.signal = 1e-4, .noise = 1000.0};  // B_noise is 10^7
  int unknown = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    NoiseScale scale(kForever);
    for (int i = 0; i < 100; ++i) {
      scale.add(tests::draw_sample(model, 4, 32.0, 1, random));
      const NoiseScaleEstimate estimate = scale.estimate();
      CHECK(std::isfinite(estimate.least));
      CHECK(estimate.least >= 0.0);
      if (estimate.scale) CHECK((std::isfinite(*estimate.scale) && *estimate.scale > 0.0));
    }
    const NoiseScaleEstimate estimate = scale.estimate();
    if (estimate.scale) continue;
    ++unknown;
    CHECK(estimate.least < model.noise_scale());
  }
  CHECK(unknown >= 90);
}

TEST_CASE("noise scale: zero without noise, and unknown without a gradient") {
  NoiseScale silent(kForever);
  NoiseScale still(kForever);
  for (int i = 0; i < 20; ++i) {
    silent.add({.gradients = 4, .mini_batch = 8.0, .square_mean = 2.0, .mean_square = 2.0});
    still.add({.gradients = 4, .mini_batch = 8.0, .square_mean = 0.0, .mean_square = 0.0});
  }
  CHECK(silent.estimate().scale == 0.0);
  CHECK(silent.estimate().error == 0.0);
  CHECK_FALSE(still.estimate().scale);
  CHECK(still.estimate().least == 0.0);
}

TEST_CASE("noise scale: gradients of several learners calibrate successive gradients") {
  std::mt19937_64 random(11);
  const tests::GradientModel model{.signal = 1.0, .noise = 60.0};
  const tests::GradientModel biased{.signal = 0.25, .noise = 60.0};  // successive gradients give 4 times the scale
  const auto add = [&](NoiseScale& to, GradientSource source, int samples, double growth) {
    const tests::GradientModel& first = source == GradientSource::kSuccessive ? biased : model;
    for (int i = 0; i < samples; ++i) {
      tests::GradientModel now = first;
      now.noise *= 1.0 + (growth - 1.0) * std::min(1.0, 2.0 * i / samples);
      GradientSample sample = tests::draw_sample(now, 2, 32.0, 4, random);
      sample.source = source;
      sample.examples = 256;
      to.add(sample);
    }
  };
  NoiseScale scale(50'000.0);
  add(scale, GradientSource::kSuccessive, 400, 1.0);
  CHECK(scale.estimate().scale.value() == Approx(240.0).epsilon(0.25));  // the only estimate
  add(scale, GradientSource::kLearners, 150, 1.0);
  CHECK(scale.estimate().scale.value() == Approx(60.0).epsilon(0.15));
  add(scale, GradientSource::kSuccessive, 2000, 3.0);
  CHECK(scale.estimate().scale.value() == Approx(180.0).epsilon(0.25));
}

TEST_CASE("noise scale: gradients of several learners calibrate the lower bound of successive gradients, too") {
  constexpr double kMiniBatch = 32.0;
  const auto sample = [](GradientSource source, double noise, double signal, std::int64_t examples) {
    return GradientSample{.source = source,
                          .mini_batch = kMiniBatch,
                          .square_mean = signal + noise / kMiniBatch,
                          .mean_square = signal + noise / (2.0 * kMiniBatch),
                          .examples = examples};
  };
  NoiseScale alone(10'000.0);
  NoiseScale calibrated(10'000.0);
  for (int i = 0; i < 20; ++i) {
    calibrated.add(sample(GradientSource::kLearners, 60.0, 1.0, 0));
    for (NoiseScale* each : {&alone, &calibrated}) each->add(sample(GradientSource::kSuccessive, 60.0, 0.25, 0));
  }
  // The learners' samples are now too old, and the signal of the successive ones varies around 0.
  for (int i = 0; i < 60; ++i) {
    const double signal = i % 2 == 0 ? 9.0 : -9.0;
    for (NoiseScale* each : {&alone, &calibrated}) {
      each->add(sample(GradientSource::kSuccessive, 640.0, signal, i == 0 ? 3000 : 300));
    }
  }
  CHECK_FALSE(alone.estimate().scale);
  CHECK_FALSE(calibrated.estimate().scale);
  CHECK(alone.estimate().least > 0.0);
  CHECK(calibrated.estimate().least == Approx(alone.estimate().least / (240.0 / 60.0)));
}

TEST_CASE("noise scale: impossible samples are refused, and non-finite ones are dropped and counted") {
  NoiseScale scale(1000.0);
  const GradientSample good{.gradients = 2, .mini_batch = 4.0, .square_mean = 2.0, .mean_square = 1.5};
  const auto refused = [&](auto change) {
    GradientSample sample = good;
    change(sample);
    CHECK_THROWS_AS(scale.add(sample), std::invalid_argument);
  };
  refused([](GradientSample& s) { s.gradients = 1; });
  refused([](GradientSample& s) { s.mini_batch = 0.0; });
  refused([](GradientSample& s) { s.rounds = 0; });
  refused([](GradientSample& s) { s.examples = -1; });
  refused([](GradientSample& s) { s.mean_square = 2.1; });
  refused([](GradientSample& s) { s.square_mean = -1.0; });
  CHECK_THROWS_AS(NoiseScale(0.0), std::invalid_argument);
  CHECK_THROWS_AS(NoiseScale(std::numeric_limits<double>::infinity()), std::invalid_argument);
  for (int i = 0; i < 10; ++i) scale.add(good);
  const double before = scale.estimate().scale.value();
  GradientSample infinite = good;
  infinite.square_mean = std::numeric_limits<double>::infinity();
  scale.add(infinite);
  GradientSample nothing = good;
  nothing.mean_square = std::numeric_limits<double>::quiet_NaN();
  scale.add(nothing);
  CHECK(scale.dropped_samples() == 2);
  CHECK(scale.estimate().scale.value() == before);
}

}  // namespace arbalest::autotuner
