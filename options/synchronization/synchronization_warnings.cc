#include "options/synchronization/synchronization_warnings.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "options/readers/learners_reader.h"
#include "options/synchronization/hogwild_check.h"
#include "options/synchronization/job_schemes.h"

namespace arbalest::jobs {

using dataflow::FieldIssue;
using sma::SynchronizationMode;

namespace {

bool rises(const scheduler::LearningRateSchedule& schedule) {
  return schedule.at(0.0, 1) < 0.5F * static_cast<float>(schedule.base);
}

// The message of the phase's async_sgd as the job has it; null if the phase has another scheme.
const v1::AsyncSgd* written_kind(const v1::Synchronization& written, const std::string& path) {
  if (written.has_async_sgd() && path == "synchronization.async_sgd") return &written.async_sgd();
  for (int i = 0; i < written.switch__size(); ++i) {
    const v1::Switch& each = written.switch_(i);
    if (each.has_async_sgd() && path == fmt::format("synchronization.switch[{}].async_sgd", i)) {
      return &each.async_sgd();
    }
  }
  return nullptr;
}

// Warns of fields of async_sgd that have no effect. `written`: the phase's message, with what the job says.
void add_idle_fields(const SchemePhase& phase, const v1::AsyncSgd& written, std::vector<FieldIssue>& warnings) {
  const sma::Options& scheme = phase.scheme;
  if (scheme.scheme != sma::Scheme::kAsyncSgd) return;
  const auto warn_if = [&](bool is_set, const std::string& field, const std::string& reason) {
    if (!is_set) return;
    warnings.push_back({fmt::format("{}.{}", phase.path, field), fmt::format("{} has no effect {}", field, reason)});
  };
  const SynchronizationMode mode = scheme.mode(phase.learners);
  if (mode == SynchronizationMode::kNone) {
    const char* const reason =
        "with one learner, which trains without a server; remove it, or set learners { per_device { fixed: 2 } } or "
        "more";
    warn_if(scheme.staleness.has_value(), "staleness", reason);
    warn_if(scheme.period > 1, "push_every", reason);
    warn_if(written.scale_by_staleness(), "scale_by_staleness", reason);
  }
  if (mode == SynchronizationMode::kGradient) {
    constexpr const char* kReason =
        "because staleness: 0 with push_every: 1 is s_sgd, {}; remove it, or raise staleness";
    warn_if(written.scale_by_staleness(), "scale_by_staleness", fmt::format(kReason, "where no gradient is stale"));
    warn_if(written.warm_start_epochs() > 0.0, "warm_start_epochs",
            fmt::format(kReason, "the scheme of the warm start"));
  }
}

}  // namespace

std::vector<FieldIssue> synchronization_warnings(const v1::Synchronization& written, const JobOptions& options) {
  std::vector<FieldIssue> warnings;
  bool is_first = true;
  for (const SchemePhase& phase : scheme_phases(options, most_learners_of_all(options))) {
    // The learning rate rises at the start of the run, not at a switch.
    const bool warms_up = std::exchange(is_first, false) && rises(options.learning_rate);
    std::string text = sma::warning(phase.scheme, phase.learners, engine::momentum_of(options.optimizer.rule),
                                    phase.scaling == scheduler::RateScaling::kLinear, warms_up);
    if (!text.empty()) warnings.push_back({phase.path, std::move(text)});
    if (!has_rounds(phase.scheme, phase.learners) && phase.scaling != scheduler::RateScaling::kKeep) {
      warnings.push_back(
          {phase.path,
           fmt::format(
               "with {} learners there are as many steps as with one (each {} is a step), and with_learners also "
               "raises the learning rate of each step; set with_learners: KEEP if the loss rises",
               phase.learners,
               phase.scheme.mode(phase.learners) == SynchronizationMode::kServer ? "push" : "mini-batch")});
    }
    // A switch may count the learners of this process only. With those of others no field is idle.
    if (phase.learners == 1 && options.learners_elsewhere > 0) continue;
    if (const v1::AsyncSgd* kind = written_kind(written, phase.path)) add_idle_fields(phase, *kind, warnings);
  }
  if (auto warning = hogwild_warning(options)) warnings.push_back(std::move(*warning));
  if (options.reports_loss_gap && most_learners_of_all(options) == 1) {
    warnings.push_back(
        {"synchronization.report_loss_gap",
         "the job has one learner, and nothing is averaged: averaging_loss_gap has no meaning; remove report_loss_gap, "
         "or set learners { per_device { fixed: 2 } } or more"});
  }
  return warnings;
}

}  // namespace arbalest::jobs
