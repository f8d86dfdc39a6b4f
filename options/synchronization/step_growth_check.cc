#include "options/synchronization/step_growth_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/update_rule.h"
#include "messages/text.h"
#include "options/readers/learners_reader.h"

namespace arbalest::jobs {

using sma::SynchronizationMode;

namespace {

constexpr float kHighMomentum = 0.8F;
constexpr int kManyStepsAlone = 10;
constexpr int kFewPushing = 4;      // learners that may begin to push in the midst of a run
constexpr int kMostGain = 4;        // of outer momentum, in advice: a larger one has diverged
constexpr double kMuch = 2.0;       // what a learner that trains alone no longer bears
constexpr double kRounding = 1e-6;  // of learning rates
constexpr const char* kKeep = "set learning_rate.with_learners: KEEP";

// What bounds a job's steps besides the learning rate.
enum class Bound {
  kNone,
  kSingleLayer,  // the gradient of a single layer is bounded by its input
  kNormalized    // batch norm makes the output independent of the weights' size; or the momentum is not high
};

Bound bound_of(const JobOptions& options) {
  if (engine::momentum_of(options.optimizer.rule) < kHighMomentum || options.graph == nullptr) {
    return Bound::kNormalized;
  }
  const auto& nodes = options.graph->nodes();
  const auto has_weights = [](const dataflow::Graph::Node& node) { return !node.layer->width_field().empty(); };
  const auto normalizes = [](const dataflow::Graph::Node& node) {
    return node.layer->with_frozen_statistics() != nullptr;
  };
  if (std::ranges::any_of(nodes, normalizes)) return Bound::kNormalized;
  return std::ranges::count_if(nodes, has_weights) > 1 ? Bound::kNone : Bound::kSingleLayer;
}

// How the steps of a phase grow.
struct Growth {
  double rate = 1.0;    // factor of a learner's learning rate, up to learning_rate.limit
  double gain = 1.0;    // of the outer step
  std::string scaling;  // "LINEAR multiplies the learning rate of each of 4 learners by 4"
};

Growth growth_of(const SchemePhase& phase, const scheduler::LearningRateSchedule& schedule) {
  Growth growth;
  growth.rate = scheduler::factor_of(phase.scaling, phase.learners);
  if (schedule.limit) growth.rate = std::min(growth.rate, std::max(1.0, *schedule.limit / schedule.base));
  const float momentum = phase.scheme.momentum_for(phase.learners);
  growth.gain = static_cast<double>(phase.scheme.rate_for(phase.learners)) / (1.0 - static_cast<double>(momentum));
  growth.scaling =
      fmt::format("with_learners: {} multiplies the learning rate of each of {} learners by {:.3g}",
                  phase.scaling == scheduler::RateScaling::kLinear ? "LINEAR" : "SQRT", phase.learners, growth.rate);
  return growth;
}

// The setting that takes the momentum out of an optimizer that has some.
std::string without_momentum(const engine::UpdateRule& rule) {
  if (std::holds_alternative<engine::RmsProp>(rule)) return "optimizer.rmsprop.momentum: 0";
  const auto* sgd = std::get_if<engine::Sgd>(&rule);
  const bool has_more = sgd != nullptr && sgd->nesterov;
  return fmt::format("optimizer.sgd.momentum: 0{}", has_more ? " and optimizer.sgd.nesterov: false" : "");
}

std::string server_problem(const SchemePhase& phase, const Growth& growth, const std::string& remedy) {
  const int gradients = phase.scheme.period;
  if (growth.rate * gradients <= 1.0 + kRounding) return "";
  std::string problem;
  if (growth.rate > 1.0) problem = growth.scaling;
  if (gradients > 1) {
    problem += fmt::format("{}a push is the sum of {} gradients", problem.empty() ? "" : ", and ", gradients);
  }
  return fmt::format(
      "{}, and each of {} learners pushes whole steps that miss those of the others; {}{}{}", problem, phase.learners,
      growth.rate > 1.0 ? kKeep : "", growth.rate > 1.0 && gradients > 1 ? " and " : "",
      gradients > 1 ? fmt::format("{}async_sgd.push_every: 1, or {}", growth.rate > 1.0 ? "" : "set ", remedy) : "");
}

// The settings with which the outer step multiplies by at most the number of learners, or by kMostGain.
std::string outer_remedy(const SchemePhase& phase, const Growth& growth) {
  const double most = std::min<double>(phase.learners, kMostGain);
  std::vector<std::string> settings;
  if (growth.rate > 1.0 + kRounding) settings.emplace_back("learning_rate.with_learners: KEEP");
  if (growth.gain > most + kRounding) {
    const double momentum = std::max(0.0, 1.0 - static_cast<double>(phase.scheme.outer_rate) / most);
    settings.push_back(
        fmt::format("{}.momentum: {:.2f}", name_of(phase.scheme.scheme), std::floor(momentum * 100.0) / 100.0));
  }
  return fmt::format("set {}", fmt::join(settings, " and "));
}

std::string rounds_problem(const SchemePhase& phase, const Growth& growth) {
  const sma::Options& scheme = phase.scheme;
  const double excess = growth.gain * growth.rate / phase.learners;
  const bool multiplies_twice = growth.gain > 1.0 + kRounding && growth.rate > 1.0 + kRounding;
  if (scheme.assigns() && excess > (multiplies_twice ? 1.0 + kRounding : kMuch - kRounding)) {
    return fmt::format(
        "{} multiplies the effective learning rate by rate / (1 - momentum) = {:.3g}, {}; {}", name_of(scheme.scheme),
        growth.gain,
        multiplies_twice ? "and " + growth.scaling : "which is much for " + counted(phase.learners, "learner"),
        outer_remedy(phase, growth));
  }
  if (scheme.scheme == sma::Scheme::kSwap && growth.rate > 1.0 + kRounding) {
    return fmt::format("{}, and under swap each trains alone to the end; {}", growth.scaling, kKeep);
  }
  if (scheme.period < kManyStepsAlone || growth.rate < kMuch - kRounding) return "";
  return fmt::format("{}, and {} lets each take {} steps alone; {}", growth.scaling, name_of(scheme.scheme),
                     scheme.period, kKeep);
}

// Weights that steps without a delay have reached lie where they alone are stable.
std::string late_start_problem(const SchemePhase& phase, const std::string& remedy) {
  if (phase.learners <= kFewPushing) return "";
  return fmt::format(
      "{} learners that push late steps diverge from the weights that another scheme has reached; begin the job with "
      "async_sgd {{ warm_start_epochs: 0 }}, or set {}",
      phase.learners, remedy);
}

std::string problem_of(const SchemePhase& phase, const scheduler::LearningRateSchedule& schedule,
                       const std::string& remedy) {
  const Growth growth = growth_of(phase, schedule);
  switch (phase.scheme.mode(phase.learners)) {
    case SynchronizationMode::kServer: return server_problem(phase, growth, remedy);
    case SynchronizationMode::kShared:
      if (growth.rate <= 1.0 + kRounding) return "";
      return fmt::format("{}, and under hogwild each takes whole steps that miss those of the others; {} and {}",
                         growth.scaling, kKeep, remedy);
    case SynchronizationMode::kAssign:
    case SynchronizationMode::kPull: return rounds_problem(phase, growth);
    case SynchronizationMode::kNone:
    case SynchronizationMode::kGradient: break;
  }
  return "";
}

}  // namespace

void check_step_growth(const JobOptions& options, dataflow::FieldIssues& issues) {
  const Bound bound = bound_of(options);
  if (bound == Bound::kNormalized) return;
  // The auto-tuner may stay at its lower bound.
  const int learners =
      options.tuned ? static_cast<int>(options.devices.size()) * options.tuned->min : most_learners_of_all(options);
  const std::string remedy = without_momentum(options.optimizer.rule);
  bool is_first = true;
  for (const SchemePhase& phase : scheme_phases(options, learners)) {
    const bool pushes = phase.scheme.mode(phase.learners) == SynchronizationMode::kServer;
    const bool begins_late = !std::exchange(is_first, false) && pushes;
    if (bound == Bound::kSingleLayer && !(pushes && phase.scheme.period > 1)) continue;
    std::string problem = problem_of(phase, options.learning_rate, remedy);
    if (problem.empty() && begins_late) problem = late_start_problem(phase, remedy);
    if (problem.empty()) continue;
    const bool keeps = problem.find("KEEP") != std::string::npos;
    issues.add(
        phase.path,
        fmt::format("with the optimizer's momentum {:g} these steps are likely to diverge: {}{}",
                    engine::momentum_of(options.optimizer.rule), problem,
                    keeps ? "; if you know that a larger learning rate works, set learning_rate.base to it" : ""));
  }
}

}  // namespace arbalest::jobs
