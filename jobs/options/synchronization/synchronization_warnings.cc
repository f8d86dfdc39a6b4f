#include "jobs/options/synchronization/synchronization_warnings.h"

#include <utility>

#include <fmt/format.h>

#include "jobs/options/readers/learners_reader.h"

namespace arbalest::jobs {

namespace {

bool rises(const scheduler::LearningRateSchedule& schedule) {
  return schedule.at(0.0, 1) < 0.5F * static_cast<float>(schedule.base);
}

}  // namespace

std::vector<std::string> synchronization_warnings(const JobOptions& options) {
  std::vector<std::string> warnings;
  bool is_first = true;
  for (const SchemePhase& phase : scheme_phases(options, most_learners(options))) {
    // The learning rate rises at the start of the run, not at a switch.
    const bool warms_up = std::exchange(is_first, false) && rises(options.learning_rate);
    const std::string text = sma::warning(phase.scheme, phase.learners, engine::momentum_of(options.optimizer.rule),
                                          phase.scaling == scheduler::RateScaling::kLinear, warms_up);
    if (!text.empty()) warnings.push_back(fmt::format("{}: {}", phase.path, text));
    if (phase.scheme.coupling(phase.learners) == sma::Coupling::kServer &&
        phase.scaling != scheduler::RateScaling::kKeep) {
      warnings.push_back(fmt::format(
          "{}: each push is a whole step, so {} learners take as many steps as one, and with_learners multiplies the "
          "learning rate of each besides; set with_learners: KEEP if the loss rises",
          phase.path, phase.learners));
    }
  }
  if (options.reports_loss_gap && most_learners(options) == 1) {
    warnings.emplace_back(
        "synchronization.report_loss_gap: the job has one learner, and nothing is averaged: averaging_loss_gap has no "
        "meaning; remove report_loss_gap, or set learners { per_device { fixed: 2 } } or more");
  }
  return warnings;
}

}  // namespace arbalest::jobs
