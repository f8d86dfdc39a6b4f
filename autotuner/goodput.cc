#include "autotuner/goodput.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "autotuner/throughput.h"

namespace arbalest::autotuner {

namespace {

constexpr double kLeastMove = 1.25;
constexpr double kErrors = 4.0;
// Relative error of a scale for which only a lower bound is known.
constexpr double kErrorOfBound = 0.5;

}  // namespace

Efficiency::Efficiency(double noise_scale, double error, double mini_batch)
    : noise_scale_(noise_scale), error_(error), mini_batch_(mini_batch) {
  const bool is_sound = noise_scale >= 0.0 && error >= 0.0 && mini_batch > 0.0 && std::isfinite(noise_scale) &&
                        std::isfinite(error) && std::isfinite(mini_batch);
  if (!is_sound) {
    throw std::invalid_argument(
        fmt::format("a noise scale of {} examples, error {}, with mini-batches of {}", noise_scale, error, mini_batch));
  }
}

Efficiency Efficiency::at_least(double noise_scale, double mini_batch) {
  Efficiency efficiency(noise_scale, kErrorOfBound, mini_batch);
  efficiency.is_bound_ = true;
  return efficiency;
}

double Efficiency::of(int learners) const {
  if (!noise_scale_) return 1.0;
  return (*noise_scale_ + mini_batch_) / (*noise_scale_ + mini_batch_ * learners);
}

// The derivative of log of(a) - log of(b) with respect to log B_noise, times the relative error of B_noise.
double Efficiency::error_between(int a, int b) const {
  if (!noise_scale_) return 0.0;
  const double scale = *noise_scale_;
  return error_ * scale * std::abs(1.0 / (scale + mini_batch_ * a) - 1.0 / (scale + mini_batch_ * b));
}

bool Efficiency::has_moved_to(const Efficiency& later) const {
  if (!later.is_known()) return false;
  if (!is_known()) return true;
  const auto offset = [](const Efficiency& e) { return *e.noise_scale_ + e.mini_batch_; };
  const auto error = [&](const Efficiency& e) { return e.error_ * *e.noise_scale_ / offset(e); };
  const double move = std::abs(std::log(offset(later) / offset(*this)));
  return move > std::max(std::log(kLeastMove), kErrors * combined_error(error(*this), error(later)));
}

Efficiency learned_from(const NoiseScaleEstimate& estimate, const Efficiency& before, double mini_batch) {
  if (estimate.scale) return {*estimate.scale, estimate.error, mini_batch};
  if (estimate.least > before.noise_scale().value_or(0.0)) return Efficiency::at_least(estimate.least, mini_batch);
  return before;
}

Objective::Objective(const Efficiency& efficiency, int devices, int other_learners)
    : is_goodput_(true), efficiency_(efficiency), devices_(devices), other_learners_(other_learners) {}

double Objective::error_between(const Configuration& a, const Configuration& b) const {
  return efficiency_.error_between(total(a), total(b));
}

}  // namespace arbalest::autotuner
