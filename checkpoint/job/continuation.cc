#include "checkpoint/job/continuation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "arbalest/v1/job.pb.h"
#include "checkpoint/job/saved_job.h"
#include "options/loading/job_reader.h"
#include "options/readers/epoch_defaults.h"

namespace arbalest::jobs {

namespace {

constexpr double kSame = 1e-6;  // epochs; tolerates rounding in sums of fractions

// The length of the job's schedule of the learning rate; none if it has no end.
std::optional<double> schedule_epochs(const v1::LearningRate& rate) {
  if (rate.has_polynomial()) return rate.polynomial().epochs();
  if (rate.has_cosine()) return rate.cosine().epochs();
  return rate.has_one_cycle() ? std::optional(rate.one_cycle().epochs()) : std::nullopt;
}

// The epoch of the run at which the schedule ends, its restarts included; none if it has no end.
std::optional<double> schedule_end(const v1::LearningRate& rate) {
  const std::optional<double> epochs = schedule_epochs(rate);
  if (!epochs) return std::nullopt;
  if (rate.restart().empty()) return rate.warm_up().epochs() + *epochs;
  const v1::LearningRate::Restart& last = *rate.restart().rbegin();
  return last.epoch() + last.epochs();
}

// The epoch at which the schedule of a run must start anew to train up to `max_epochs`; none if it need not.
std::optional<double> restart_epoch(const v1::Job& saved, const RunState& state, int max_epochs) {
  const std::optional<double> end = schedule_end(saved.learning_rate());
  if (!end) return std::nullopt;
  const double planned = saved.training().max_epochs();
  const double epoch = std::abs(*end - planned) < kSame ? planned : *end;
  // A schedule that ended earlier than the run was planned so: its last learning rate goes on.
  const bool was_planned_shorter = epoch < planned || epoch < most_epochs_trained(state);
  return was_planned_shorter || epoch > max_epochs - kSame ? std::nullopt : std::optional(epoch);
}

std::string restart_setting(double epoch, double epochs, double factor) {
  return fmt::format("{}={{epoch: {} epochs: {} factor: {}}}", kRestartPath, epoch, epochs, factor);
}

void add_restarts(const v1::Job& saved, const RunState& state, int max_epochs, std::vector<std::string>& settings) {
  for (const v1::LearningRate::Restart& each : saved.learning_rate().restart()) {
    settings.push_back(restart_setting(each.epoch(), each.epochs(), each.factor()));
  }
  const std::optional<double> epoch = restart_epoch(saved, state, max_epochs);
  if (epoch) settings.push_back(restart_setting(*epoch, max_epochs - *epoch, scheduler::Restart{}.factor));
}

// Whether the job names restarts, and those of the checkpoint only: it has planned nothing for the epochs that are
// added. Their lengths may follow from training.max_epochs.
bool names_same_restarts(const v1::LearningRate& saved, const v1::LearningRate& now) {
  return !now.restart().empty() && std::ranges::equal(saved.restart(), now.restart(), [](const auto& a, const auto& b) {
    return a.epoch() == b.epoch() && a.factor() == b.factor();
  });
}

void add_if_other(const std::string& path, double before, double now, std::vector<std::string>& settings) {
  if (before != now) settings.push_back(fmt::format("{}={}", path, before));
}

}  // namespace

std::vector<std::string> settings_with(const std::vector<std::string>& given, const std::vector<std::string>& more) {
  const auto path_of = [](const std::string& setting) {
    return std::string_view(setting).substr(0, setting.find('='));
  };
  std::vector<std::string> all;
  for (const std::string& setting : given) {
    const auto replaces = [&](const std::string& other) { return path_of(other) == path_of(setting); };
    if (std::ranges::none_of(more, replaces)) all.push_back(setting);
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

double most_epochs_trained(const RunState& state) {
  return static_cast<double>(state.epochs) + (state.epoch.tasks > 0 ? 1.0 : 0.0);
}

std::vector<std::string> continuation(const std::string& saved_text, const RunState& state, const JobOptions& job) {
  const v1::Job saved = parse_saved_job(saved_text);
  const v1::Job now = parse_saved_job(job.resolved_text);
  const int max_epochs = job.training.max_epochs;
  std::vector<std::string> settings;
  if (job.training.chooses_precision) {
    settings.push_back(fmt::format("training.precision={}", to_string(from_proto(saved.training().precision()))));
  }
  const bool is_longer = max_epochs > saved.training().max_epochs();
  if (is_longer && names_same_restarts(saved.learning_rate(), now.learning_rate())) {
    add_restarts(saved, state, max_epochs, settings);
  }
  for (const std::string& path : job.following_max_epochs) {
    if (path == kGrowthEpochsPath && saved.learners().per_device().has_growth()) {
      const double before = saved.learners().per_device().growth().epochs();
      if (before < max_epochs) add_if_other(path, before, now.learners().per_device().growth().epochs(), settings);
    } else if (path == kWarmStartEpochsPath && saved.synchronization().has_async_sgd()) {
      const double before = saved.synchronization().async_sgd().warm_start_epochs();
      if (before < max_epochs) {
        add_if_other(path, before, now.synchronization().async_sgd().warm_start_epochs(), settings);
      }
    } else if (path == kRestartPath) {
      if (saved.learning_rate().schedule_case() != now.learning_rate().schedule_case()) continue;
      add_restarts(saved, state, max_epochs, settings);
    } else if (path == path_of_schedule_epochs(saved.learning_rate())) {
      add_if_other(path, *schedule_epochs(saved.learning_rate()), *schedule_epochs(now.learning_rate()), settings);
    }
  }
  return settings;
}

}  // namespace arbalest::jobs
