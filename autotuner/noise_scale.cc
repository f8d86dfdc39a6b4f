#include "autotuner/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace arbalest::autotuner {

namespace {

constexpr double kFewestSamples = 8.0;
// Fraction of the memory within which two averages count as simultaneous.
constexpr double kFresh = 0.25;
constexpr double kLeastErrors = 2.0;  // |G|^2 must exceed zero by this many standard errors

void require_sound(const GradientSample& sample) {
  if (sample.gradients < 2) {
    throw std::invalid_argument(fmt::format("gradient noise needs two gradients, not {}", sample.gradients));
  }
  if (!(sample.mini_batch > 0.0) || sample.rounds < 1 || sample.examples < 0) {
    throw std::invalid_argument(fmt::format("a gradient sample of {} rounds, {} examples and mini-batches of {}",
                                            sample.rounds, sample.examples, sample.mini_batch));
  }
  constexpr double kRounding = 1e-3;
  if (sample.square_mean < 0.0 || sample.mean_square < 0.0 ||
      sample.mean_square > (1.0 + kRounding) * sample.square_mean) {
    throw std::invalid_argument(fmt::format("no gradients have the mean square {} and a mean of square {}",
                                            sample.square_mean, sample.mean_square));
  }
}

}  // namespace

NoiseScale::NoiseScale(double memory_examples) : memory_examples_(memory_examples) {
  if (!(memory_examples > 0.0) || !std::isfinite(memory_examples)) {
    throw std::invalid_argument(fmt::format("gradient noise cannot be averaged over {} examples", memory_examples));
  }
}

// A round of k gradients has k - 1 degrees of freedom for S, and is weighted by them. The precision of |G|^2 grows at
// least as fast with k.
void NoiseScale::add(const GradientSample& sample) {
  if (!std::isfinite(sample.square_mean) || !std::isfinite(sample.mean_square)) {
    ++dropped_;
    return;
  }
  require_sound(sample);
  const auto rounds = static_cast<double>(sample.rounds);
  const double k = sample.gradients;
  const double small = sample.square_mean / rounds;
  const double big = sample.mean_square / rounds;
  const double noise = std::max(0.0, small - big) * sample.mini_batch * k / (k - 1.0);
  const double signal = big - noise / (k * sample.mini_batch);
  for (Averages* averages : {&learners_, &successive_}) {
    averages->sums.decay(std::exp(-static_cast<double>(sample.examples) / memory_examples_));
    averages->age += static_cast<double>(sample.examples);
  }
  Averages& own = sample.source == GradientSource::kLearners ? learners_ : successive_;
  own.sums.add(rounds * (k - 1.0), noise, signal);
  own.age = 0.0;
  if (std::max(learners_.age, successive_.age) > kFresh * memory_examples_) return;
  const std::optional<double> unbiased = learners_.sums.estimate().scale;
  const std::optional<double> biased = successive_.sums.estimate().scale;
  if (unbiased && biased && *unbiased > 0.0 && *biased > 0.0) successive_factor_ = *biased / *unbiased;
}

// The estimate from learners is used while it is fresh.
NoiseScaleEstimate NoiseScale::estimate() const {
  const bool has_learners = learners_.sums.weight > 0.0;
  const bool has_successive = successive_.sums.weight > 0.0;
  if (!has_successive || (has_learners && learners_.age <= kFresh * memory_examples_)) return learners_.sums.estimate();
  NoiseScaleEstimate estimate = successive_.sums.estimate();
  if (estimate.scale) *estimate.scale /= successive_factor_;
  estimate.least /= successive_factor_;
  return estimate;
}

void NoiseScale::Sums::decay(double factor) {
  const double squared = factor * factor;
  weight *= factor;
  noise *= factor;
  signal *= factor;
  weight2 *= squared;
  signal2 *= squared;
  noise_noise2 *= squared;
  noise_signal2 *= squared;
  signal_signal2 *= squared;
}

void NoiseScale::Sums::add(double a, double s, double g) {
  weight += a;
  noise += a * s;
  signal += a * g;
  weight2 += a * a;
  signal2 += a * a * g;
  noise_noise2 += a * a * s * s;
  noise_signal2 += a * a * s * g;
  signal_signal2 += a * a * g * g;
}

// The standard errors treat every sample as one draw of unknown variance. The standard error of the mean of x is
// sqrt(sum a^2 (x - mean)^2) / sum a. The standard error of the ratio R = S / |G|^2 follows from the residuals S - R
// |G|^2, whose mean is zero (Cochran, "Sampling Techniques", 1977, section 6.4).
NoiseScaleEstimate NoiseScale::Sums::estimate() const {
  NoiseScaleEstimate estimate;
  if (weight2 <= 0.0) return estimate;
  estimate.samples = weight * weight / weight2;
  if (estimate.samples < kFewestSamples) return estimate;
  const double few = estimate.samples / (estimate.samples - 1.0);
  const double s = estimate.noise = noise / weight;
  const double g = estimate.signal = signal / weight;
  const double spread = signal_signal2 - 2.0 * g * signal2 + g * g * weight2;
  const double g_error = std::sqrt(few * std::max(0.0, spread)) / weight;
  const double most = g + kLeastErrors * g_error;
  if (most > 0.0) estimate.least = s / most;
  if (g <= kLeastErrors * g_error || g <= 0.0) return estimate;
  const double ratio = s / g;
  const double residuals = noise_noise2 - 2.0 * ratio * noise_signal2 + ratio * ratio * signal_signal2;
  const double error = std::sqrt(few * std::max(0.0, residuals)) / (weight * g);
  if (!std::isfinite(ratio) || !std::isfinite(error)) return estimate;
  estimate.scale = ratio;
  estimate.error = ratio > 0.0 ? error / ratio : 0.0;
  return estimate;
}

}  // namespace arbalest::autotuner
