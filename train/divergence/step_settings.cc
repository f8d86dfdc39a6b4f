#include "train/divergence/step_settings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/update_rule.h"
#include "sma/divergence_remedy.h"

namespace arbalest::jobs {

namespace {

bool changes_steps(std::string_view setting) {
  constexpr std::array<std::string_view, 5> kFields = {"training.batch_size", "learning_rate", "optimizer", "learners",
                                                       "synchronization"};
  constexpr std::array<std::string_view, 2> kWatching = {"synchronization.report_loss_gap",
                                                         "synchronization.compare_rounds"};
  const auto begins = [&](std::string_view field) { return setting.starts_with(field); };
  return std::ranges::any_of(kFields, begins) && std::ranges::none_of(kWatching, begins);
}

// The scheme at the end of the run.
const sma::Options& last_scheme(const JobOptions& job, const RunSummary& summary) {
  const sma::Options* scheme = &job.synchronization;
  for (const SynchronizationSwitch& each : job.switches) {
    if (each.at_epoch <= summary.epochs_begun) scheme = &each.to;
  }
  return *scheme;
}

std::string remedy(const JobOptions& job, const RunSummary& summary) {
  if (!job.sparse) {
    return sma::divergence_remedy(last_scheme(job, summary), summary.learners, engine::momentum_of(job.optimizer.rule));
  }
  const auto* proximal = std::get_if<DelayedProximalOptions>(&job.sparse->scheme);
  return proximal == nullptr ? sma::hogwild_rows_remedy(summary.learners)
                             : sma::delayed_proximal_remedy(proximal->solver.max_delay);
}

}  // namespace

std::string advice_about_settings(const JobOptions& job, const RunSummary& summary,
                                  std::span<const std::string> settings) {
  std::vector<std::string> found;
  for (const std::string& setting : settings) {
    if (changes_steps(setting)) found.push_back("--set " + setting);
  }
  if (found.empty()) return "";
  return fmt::format("this run has {}, which {} the length of the steps; {}", fmt::join(found, " and "),
                     found.size() == 1 ? "changes" : "change", remedy(job, summary));
}

}  // namespace arbalest::jobs
