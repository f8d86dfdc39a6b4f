#include "autotuner/watch.h"

#include <algorithm>

namespace arbalest::autotuner {

namespace {

constexpr double kLeastChange = 0.08;
constexpr double kChangeErrors = 4.0;

double noise_of(const std::vector<double>& rates) { return NoiseEstimate().with(rates); }

// Returns 1 or -1 if the throughput has gone up or down; 0 if `windows` windows cannot tell a difference.
int direction(double ratio, double noise, int windows) {
  const double error = combined_error(median_error(noise, windows), median_error(noise, Watch::kBaselineWindows));
  const double threshold = std::max(kLeastChange, kChangeErrors * error);
  return ratio > 1.0 + threshold ? 1 : ratio < 1.0 - threshold ? -1 : 0;
}

}  // namespace

std::optional<double> Watch::add(double rate) {
  ++windows_;
  if (recent_.size() == 2 * kRecentWindows) recent_.erase(recent_.begin(), recent_.end() - kRecentWindows);
  recent_.push_back(rate);
  if (windows_ < kBaselineWindows) return std::nullopt;
  if (windows_ == kBaselineWindows) {
    baseline_ = recent_;
    noise_ = noise_of(baseline_);
    const double ratio = baseline() / expected_;
    if (direction(ratio, noise_, kBaselineWindows) != 0) first_move_ = ratio;
    return first_move_;
  }
  if ((windows_ - kBaselineWindows) % kBlockWindows != 0) return std::nullopt;
  const double ratio = median(last(kBlockWindows)) / baseline();
  const int moved = direction(ratio, noise_, kBlockWindows);
  const bool lasting = moved != 0 && moved == moved_;
  moved_ = moved;
  if (lasting) return ratio;
  return moved == 0 ? first_move_ : std::nullopt;
}

double Watch::baseline() const { return median(baseline_.empty() ? recent_ : baseline_); }

std::vector<double> Watch::last(int windows) const {
  const auto count = std::min(std::ssize(recent_), static_cast<std::ptrdiff_t>(windows));
  return {recent_.end() - count, recent_.end()};
}

}  // namespace arbalest::autotuner
