#include "autotuner/throughput.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace arbalest::autotuner {

namespace {

constexpr double kLeastNoise = 0.003;

void append_residuals(std::span<const double> rates, std::vector<double>& residuals) {
  if (rates.size() < 2) return;  // a single window says nothing about its deviation
  const double center = median({rates.begin(), rates.end()});
  bool is_left_out = false;
  for (const double rate : rates) {
    if (rate == center && !is_left_out) {
      is_left_out = true;
    } else {
      residuals.push_back(std::abs(rate / center - 1.0));
    }
  }
}

}  // namespace

void WindowMeter::restart(int learners) {
  learners_ = learners;
  settling_ = options_.settling;
  tasks_ = 0;
  examples_ = 0;
  seconds_ = 0.0;
  processor_ = {};
}

bool WindowMeter::completes(std::int64_t tasks, std::int64_t examples, double seconds) const {
  const double all_seconds = seconds_ + seconds;
  if (all_seconds <= 0.0 || all_seconds < options_.seconds) return false;
  return examples_ + examples > 0 && tasks_ + tasks >= std::int64_t{options_.rounds} * learners_;
}

std::optional<Window> WindowMeter::add(std::int64_t tasks, std::int64_t examples, double seconds,
                                       const ProcessorUse& processor) {
  const bool is_complete = completes(tasks, examples, seconds);
  tasks_ += tasks;
  examples_ += examples;
  seconds_ += seconds;
  processor_.add(processor);
  if (!is_complete) return std::nullopt;
  const Window window{static_cast<double>(examples_) / seconds_, processor_};
  tasks_ = 0;
  examples_ = 0;
  seconds_ = 0.0;
  processor_ = {};
  if (settling_ > 0) {
    --settling_;
    return std::nullopt;
  }
  return window;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_error(double noise, int windows) { return noise * std::sqrt(std::numbers::pi / (2.0 * windows)); }

void NoiseEstimate::add(std::span<const double> rates) { append_residuals(rates, residuals_); }

double NoiseEstimate::with(std::span<const double> rates) const {
  constexpr double kNormal = 1.4826;  // standard deviation of a normal distribution / median of its absolute deviations
  std::vector<double> residuals = residuals_;
  append_residuals(rates, residuals);
  return residuals.empty() ? kLeastNoise : std::max(kLeastNoise, kNormal * median(std::move(residuals)));
}

}  // namespace arbalest::autotuner
