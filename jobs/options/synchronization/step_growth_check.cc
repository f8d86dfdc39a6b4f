#include "jobs/options/synchronization/step_growth_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "engine/update_rule.h"
#include "jobs/messages/text.h"
#include "jobs/options/readers/learners_reader.h"

namespace arbalest::jobs {

using sma::Coupling;

namespace {

constexpr float kHighMomentum = 0.8F;
constexpr int kManyStepsAlone = 10;
constexpr int kVeryManyStepsAlone = 40;
constexpr int kFewPushing = 4;      // learners that may begin to push in the midst of a run
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

std::string server_problem(const SchemePhase& phase, const Growth& growth) {
  const int gradients = phase.scheme.period;
  if (growth.rate * gradients <= 1.0 + kRounding) return "";
  std::string problem;
  if (growth.rate > 1.0) problem = growth.scaling;
  if (gradients > 1) {
    problem += fmt::format("{}a push is the sum of {} gradients", problem.empty() ? "" : ", and ", gradients);
  }
  return fmt::format("{}, and each of {} learners pushes whole steps that miss those of the others; {}{}{}", problem,
                     phase.learners, growth.rate > 1.0 ? kKeep : "", growth.rate > 1.0 && gradients > 1 ? " and " : "",
                     gradients > 1 ? fmt::format("{}async_sgd.push_every: 1, or optimizer.sgd.momentum: 0",
                                                 growth.rate > 1.0 ? "" : "set ")
                                   : "");
}

// The momentum with which `learners` learners move the model `learners` times as far as one.
std::string fitting_momentum(const SchemePhase& phase) {
  const double momentum = 1.0 - static_cast<double>(phase.scheme.outer_rate) / phase.learners;
  return fmt::format("{:.2f}", std::floor(std::max(0.0, momentum) * 100.0) / 100.0);
}

std::string rounds_problem(const SchemePhase& phase, const Growth& growth) {
  const sma::Options& scheme = phase.scheme;
  const double excess = growth.gain * growth.rate / phase.learners;
  const bool multiplies_twice = growth.gain > 1.0 + kRounding && growth.rate > 1.0 + kRounding;
  if (scheme.assigns() && excess > (multiplies_twice ? 1.0 + kRounding : kMuch - kRounding)) {
    const std::string gain = fmt::format("{} multiplies the effective learning rate by rate / (1 - momentum) = {:.3g}",
                                         name_of(scheme.scheme), growth.gain);
    if (growth.gain / phase.learners < kMuch - kRounding) {
      return fmt::format("{}, and {}; {}", gain, growth.scaling, kKeep);
    }
    return fmt::format("{}, which is much for {}; set {}.momentum: {}{}", gain, counted(phase.learners, "learner"),
                       name_of(scheme.scheme), fitting_momentum(phase),
                       growth.rate > 1.0 ? " and learning_rate.with_learners: KEEP" : "");
  }
  if (scheme.scheme == sma::Scheme::kSwap && growth.rate > 1.0 + kRounding) {
    return fmt::format("{}, and under swap each trains alone to the end; {}", growth.scaling, kKeep);
  }
  const double most = scheme.period < kVeryManyStepsAlone ? kMuch + kRounding : kMuch - kRounding;
  if (scheme.period < kManyStepsAlone || growth.rate <= most) return "";
  return fmt::format("{}, and {} lets each take {} steps alone; {}", growth.scaling, name_of(scheme.scheme),
                     scheme.period, kKeep);
}

// Weights that steps without a delay have reached lie where they alone are stable.
std::string late_start_problem(const SchemePhase& phase) {
  if (phase.learners <= kFewPushing) return "";
  return fmt::format(
      "{} learners that push late steps diverge from the weights that another scheme has reached; begin the job with "
      "async_sgd {{ warm_start_epochs: 0 }}, or set optimizer.sgd.momentum: 0",
      phase.learners);
}

std::string problem_of(const SchemePhase& phase, const scheduler::LearningRateSchedule& schedule) {
  const Growth growth = growth_of(phase, schedule);
  switch (phase.scheme.coupling(phase.learners)) {
    case Coupling::kServer:
      return server_problem(phase, growth);
    case Coupling::kShared:
      if (growth.rate <= 1.0 + kRounding) return "";
      return fmt::format("{}, and under hogwild each takes whole steps that miss those of the others; {}",
                         growth.scaling, kKeep);
    case Coupling::kAssign:
    case Coupling::kPull:
      return rounds_problem(phase, growth);
    case Coupling::kNone:
    case Coupling::kGradient:
      break;
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
  bool is_first = true;
  for (const SchemePhase& phase : scheme_phases(options, learners)) {
    const bool pushes = phase.scheme.coupling(phase.learners) == Coupling::kServer;
    const bool begins_late = !std::exchange(is_first, false) && pushes;
    if (bound == Bound::kSingleLayer && !(pushes && phase.scheme.period > 1)) continue;
    std::string problem = problem_of(phase, options.learning_rate);
    if (problem.empty() && begins_late) problem = late_start_problem(phase);
    if (problem.empty()) continue;
    issues.add(phase.path, fmt::format("with the optimizer's momentum {:g} these steps diverge: {}",
                                       engine::momentum_of(options.optimizer.rule), problem));
  }
}

}  // namespace arbalest::jobs
