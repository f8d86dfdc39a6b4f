#include "autotuner/watch.h"

#include <algorithm>
#include <cmath>

namespace arbalest::autotuner {

namespace {

constexpr double kLeastMove = 0.08;
constexpr double kErrors = 4.0;

double noise_of(const std::vector<double>& rates) { return NoiseEstimate().with(rates); }

// 1, -1: the throughput has gone up, down; 0: as far as `windows` windows can tell it has not.
int direction(double ratio, double noise, int windows) {
  const double error = std::hypot(median_error(noise, windows), median_error(noise, Watch::kBaselineWindows));
  const double threshold = std::max(kLeastMove, kErrors * error);
  return ratio > 1.0 + threshold ? 1 : ratio < 1.0 - threshold ? -1 : 0;
}

}  // namespace

std::optional<double> Watch::add(double rate) {
  ++windows_;
  if (baseline_.size() < kBaselineWindows) {
    baseline_.push_back(rate);
    if (baseline_.size() < kBaselineWindows) return std::nullopt;
    noise_ = noise_of(baseline_);
    const double ratio = baseline() / expected_;
    return direction(ratio, noise_, kBaselineWindows) != 0 ? std::optional(ratio) : std::nullopt;
  }
  block_.push_back(rate);
  if (block_.size() < kBlockWindows) return std::nullopt;
  latest_ = median(block_);
  block_.clear();
  const double ratio = *latest_ / baseline();
  const int moved = direction(ratio, noise_, kBlockWindows);
  const bool lasting = moved != 0 && moved == moved_;
  moved_ = moved;
  return lasting ? std::optional(ratio) : std::nullopt;
}

double Watch::baseline() const { return median(baseline_); }

double Watch::latest() const { return latest_.value_or(baseline()); }

double Watch::error() const {
  if (latest_) return median_error(noise_, kBlockWindows);
  return median_error(noise_of(baseline_), static_cast<int>(baseline_.size()));
}

}  // namespace arbalest::autotuner
