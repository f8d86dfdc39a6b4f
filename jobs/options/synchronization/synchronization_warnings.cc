#include "jobs/options/synchronization/synchronization_warnings.h"

#include <utility>

#include <fmt/format.h>

#include "jobs/options/readers/learners_reader.h"
#include "jobs/options/synchronization/hogwild_check.h"

namespace arbalest::jobs {

namespace {

bool rises(const scheduler::LearningRateSchedule& schedule) {
  return schedule.at(0.0, 1) < 0.5F * static_cast<float>(schedule.base);
}

}  // namespace

std::vector<std::string> synchronization_warnings(const JobOptions& options) {
  std::vector<std::string> warnings;
  bool is_first = true;
  for (const SchemePhase& phase : scheme_phases(options, most_learners_of_all(options))) {
    // The learning rate rises at the start of the run, not at a switch.
    const bool warms_up = std::exchange(is_first, false) && rises(options.learning_rate);
    const std::string text = sma::warning(phase.scheme, phase.learners, engine::momentum_of(options.optimizer.rule),
                                          phase.scaling == scheduler::RateScaling::kLinear, warms_up);
    if (!text.empty()) warnings.push_back(fmt::format("{}: {}", phase.path, text));
    const sma::Coupling coupling = phase.scheme.coupling(phase.learners);
    const bool takes_whole_steps = coupling == sma::Coupling::kServer || coupling == sma::Coupling::kShared;
    if (takes_whole_steps && phase.scaling != scheduler::RateScaling::kKeep) {
      warnings.push_back(fmt::format(
          "{}: each {} is a whole step, so {} learners take as many steps as one, and with_learners multiplies the "
          "learning rate of each besides; set with_learners: KEEP if the loss rises",
          phase.path, coupling == sma::Coupling::kServer ? "push" : "mini-batch", phase.learners));
    }
  }
  if (std::string text = hogwild_warning(options); !text.empty()) warnings.push_back(std::move(text));
  if (options.reports_loss_gap && most_learners_of_all(options) == 1) {
    warnings.emplace_back(
        "synchronization.report_loss_gap: the job has one learner, and nothing is averaged: averaging_loss_gap has no "
        "meaning; remove report_loss_gap, or set learners { per_device { fixed: 2 } } or more");
  }
  return warnings;
}

}  // namespace arbalest::jobs
