#include "scheduler/replicas/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

namespace arbalest::scheduler {

namespace {

// Progress in the two forms that curves use.
struct Epochs {
  double of_run = 0.0;
  double of_curve = 0.0;  // since the end of the warm-up
};

double share_of(double epochs, double length) { return std::min(1.0, epochs / length); }

// Half a cosine from `first` to `last`.
double anneal(double first, double last, double share) {
  return last + (first - last) * (1.0 + std::cos(std::numbers::pi * share)) / 2.0;
}

double drop_count(const StepDrops& curve, const Epochs& now) { return std::floor(now.of_curve / curve.epochs); }

double factor_at(const FixedRate& /*curve*/, const Epochs& /*now*/) { return 1.0; }

double factor_at(const InverseDecay& curve, const Epochs& now) {
  return std::pow(1.0 + curve.gamma * now.of_curve, -curve.power);
}

double factor_at(const StepDrops& curve, const Epochs& now) { return std::pow(curve.factor, drop_count(curve, now)); }

double factor_at(const MultistepDrops& curve, const Epochs& now) {
  double factor = 1.0;
  for (const LearningRateDrop& drop : curve.drops) {
    if (drop.epoch <= now.of_run) factor *= drop.factor;
  }
  return factor;
}

double factor_at(const ExponentialDecay& curve, const Epochs& now) { return std::pow(curve.factor, now.of_curve); }

double factor_at(const PolynomialDecay& curve, const Epochs& now) {
  const double left = 1.0 - share_of(now.of_curve, curve.epochs);
  return curve.final_factor + (1.0 - curve.final_factor) * std::pow(left, curve.power);
}

double factor_at(const CosineDecay& curve, const Epochs& now) {
  return anneal(1.0, curve.final_factor, share_of(now.of_curve, curve.epochs));
}

double factor_at(const Cyclic& curve, const Epochs& now) {
  const double cycles = now.of_curve / curve.epochs;
  const double cycle = std::floor(cycles);
  const double share = cycles - cycle;
  const double height = share < curve.rising ? share / curve.rising : (1.0 - share) / (1.0 - curve.rising);
  return curve.start_factor + (1.0 - curve.start_factor) * height * std::pow(curve.amplitude_factor, cycle);
}

double factor_at(const OneCycle& curve, const Epochs& now) {
  const double share = share_of(now.of_curve, curve.epochs);
  if (share < curve.rising) return anneal(curve.start_factor, 1.0, share / curve.rising);
  return anneal(1.0, curve.final_factor, (share - curve.rising) / (1.0 - curve.rising));
}

double factor_at(const Plateau& /*curve*/, const Epochs& /*now*/) { return 1.0; }

Epochs epochs_at(const LearningRateSchedule& schedule, double progress) {
  return {progress, std::max(0.0, progress - schedule.warm_up.epochs)};
}

// The factor of the curve, which starts anew at the last restart before `progress`.
double factor_at(const LearningRateSchedule& schedule, double progress) {
  const Epochs now = epochs_at(schedule, progress);
  const auto after = std::ranges::upper_bound(schedule.restarts, progress, {}, &Restart::epoch);
  if (after == schedule.restarts.begin()) {
    return std::visit([&](const auto& shape) { return factor_at(shape, now); }, schedule.curve);
  }
  const Restart& restart = *std::prev(after);
  const auto anew = [&](auto shape) {
    if constexpr (requires { shape.final_factor; }) shape.epochs = restart.epochs;
    return factor_at(shape, Epochs{progress, progress - restart.epoch});
  };
  return restart.factor * std::visit(anew, schedule.curve);
}

struct CurveName {
  std::string_view operator()(const FixedRate& /*curve*/) const { return "fixed"; }
  std::string_view operator()(const InverseDecay& /*curve*/) const { return "inverse"; }
  std::string_view operator()(const StepDrops& /*curve*/) const { return "step"; }
  std::string_view operator()(const MultistepDrops& /*curve*/) const { return "multistep"; }
  std::string_view operator()(const ExponentialDecay& /*curve*/) const { return "exponential"; }
  std::string_view operator()(const PolynomialDecay& /*curve*/) const { return "polynomial"; }
  std::string_view operator()(const CosineDecay& /*curve*/) const { return "cosine"; }
  std::string_view operator()(const Cyclic& /*curve*/) const { return "cyclic"; }
  std::string_view operator()(const OneCycle& /*curve*/) const { return "one_cycle"; }
  std::string_view operator()(const Plateau& /*curve*/) const { return "plateau"; }
};

}  // namespace

std::string_view name_of(const LearningRateCurve& curve) { return std::visit(CurveName(), curve); }

std::optional<CurveEnd> end_of(const LearningRateCurve& curve) {
  const auto end = [](const auto& shape) -> std::optional<CurveEnd> {
    if constexpr (requires { shape.final_factor; }) return CurveEnd{shape.epochs, shape.final_factor};
    return std::nullopt;
  };
  return std::visit(end, curve);
}

std::optional<CurveEnd> LearningRateSchedule::end() const {
  std::optional<CurveEnd> end = end_of(curve);
  if (!end) return std::nullopt;
  if (restarts.empty()) return CurveEnd{warm_up.epochs + end->epochs, end->factor};
  return CurveEnd{restarts.back().epoch + restarts.back().epochs, restarts.back().factor * end->factor};
}

int LearningRateSchedule::drops_before(double progress) const {
  const Epochs now = epochs_at(*this, progress);
  if (const auto* step = std::get_if<StepDrops>(&curve)) return static_cast<int>(drop_count(*step, now));
  int count = 0;
  if (const auto* multistep = std::get_if<MultistepDrops>(&curve)) {
    for (const LearningRateDrop& drop : multistep->drops) count += drop.epoch <= now.of_run ? 1 : 0;
  }
  return count;
}

double factor_of(RateScaling scaling, double ratio) {
  switch (scaling) {
    case RateScaling::kSqrt: return std::sqrt(ratio);
    case RateScaling::kLinear: return ratio;
    case RateScaling::kKeep: break;
  }
  return 1.0;
}

std::optional<double> LearningRateSchedule::epoch_of_drop(int number) const {
  if (number < 1) return std::nullopt;
  if (const auto* step = std::get_if<StepDrops>(&curve)) return warm_up.epochs + number * step->epochs;
  const auto* multistep = std::get_if<MultistepDrops>(&curve);
  const auto index = static_cast<std::size_t>(number - 1);
  if (multistep == nullptr || index >= multistep->drops.size()) return std::nullopt;
  return multistep->drops[index].epoch;
}

float LearningRateSchedule::at(double progress, int learners) const {
  double rate = base * factor_at(*this, progress);
  if (progress < warm_up.epochs) {
    rate *= warm_up.start_factor + (1.0 - warm_up.start_factor) * progress / warm_up.epochs;
  }
  const double factor = factor_of(with_learners, learners);
  rate *= factor;
  if (limit && base * factor > *limit) rate *= *limit / (base * factor);
  return static_cast<float>(rate);
}

}  // namespace arbalest::scheduler
