#include "options/readers/learners_reader.h"

#include <algorithm>
#include <iterator>

#include "dataflow/models/fields/field_ranges.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "messages/text.h"
#include "options/readers/growth_reader.h"
#include "options/readers/size_check.h"

namespace arbalest::jobs {

namespace {

constexpr int kMaxLearners = 1024;
constexpr int kDefaultMaxLearners = 8;
// Small mini-batches leave a GPU idle. A job with better knowledge sets the number itself.
constexpr int kDefaultGpuLearners = 4;
constexpr int kMostTunedGpuLearners = 32;
constexpr const char* kPath = "learners.per_device";

// On a CPU device, more learners than cores only help if rounds are uneven: twice the cores are enough.
int most_tuned(const std::vector<engine::DeviceSpec>& devices) {
  int most = 1;
  for (const engine::DeviceSpec& device : devices) {
    most = std::max(most, device.is_cuda() ? kMostTunedGpuLearners : 2 * engine::core_count(device));
  }
  return std::min(most, kMaxLearners);
}

void read_auto(const v1::Learners::Auto& message, JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = std::string(kPath) + ".auto";
  LearnerBounds bounds;
  if (message.has_min()) bounds.min = message.min();
  bounds.max_is_given = message.has_max();
  bounds.max = message.has_max() ? message.max() : std::max(bounds.min, most_tuned(options.devices));
  if (!issues.has_within(path) && bounds.min > bounds.max) {
    issues.add(path + ".min", fmt::format("min must not be above max: {} is above {}", bounds.min, bounds.max));
  }
  if (message.objective() == v1::Learners::Auto::GOODPUT) bounds.objective = TuningObjective::kGoodput;
  options.tuned = bounds;
  options.learners_per_device.assign(options.devices.size(), std::clamp(bounds.min, 1, kMaxLearners));
}

void read_schedule(const v1::Learners::Schedule& message, JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = std::string(kPath) + ".schedule";
  if (message.step().empty()) issues.add(path, "the schedule has no step; the first must be at mini-batch 0");
  for (const v1::Learners::Schedule::Step& step : message.step()) {
    const std::string at = fmt::format("{}.step[{}]", path, options.schedule.size());
    const std::int64_t before =
        options.schedule.empty() ? -1 : static_cast<std::int64_t>(options.schedule.back().at_batch);
    if (options.schedule.empty() && step.at_batch() != 0) {
      issues.add(at + ".at_batch", fmt::format("the first step must be at mini-batch 0, not {}", step.at_batch()));
    } else if (step.at_batch() <= before) {
      issues.add(at + ".at_batch", fmt::format("at_batch must ascend: {} does not follow {}", step.at_batch(), before));
    }
    if (step.learners_size() != static_cast<int>(options.devices.size())) {
      issues.add(at, fmt::format("learners names {} devices, but the job has {}", step.learners_size(),
                                 options.devices.size()));
    }
    options.schedule.push_back(
        {static_cast<std::uint64_t>(step.at_batch()), {step.learners().begin(), step.learners().end()}});
  }
  if (!options.schedule.empty()) options.learners_per_device = options.schedule.front().per_device;
}

// Returns why averaging is unstable with this many learners; "" if it is stable.
std::string instability(int learners, const sma::Options& synchronization) {
  try {
    sma::check(synchronization, learners);
  } catch (const engine::Error& error) {
    return error.what();
  }
  return "";
}

// Warns that the scheme of synchronization allows fewer learners than a search could try.
void warn_of_bound(JobOptions& options, const std::string& field, const std::string& reason) {
  options.warnings.push_back(fmt::format("{}{}: there will be at most {} of each device: {}", kPath, field,
                                         counted(options.tuned->max, "learner"), reason));
}

// The field to which an instability is attributed. `path`: path of the scheme.
std::string field_at_fault(const sma::Options& options, const std::string& path) {
  if (options.assigns()) return path + ".rate";
  return path + (options.scheme == sma::Scheme::kEaSgd ? ".beta" : ".alpha");
}

}  // namespace

int default_learners(const engine::DeviceSpec& device) {
  return device.is_cuda() ? kDefaultGpuLearners : std::min(engine::core_count(device), kDefaultMaxLearners);
}

void read_learners(v1::Learners& learners, JobOptions& options, dataflow::FieldIssues& issues) {
  const v1::Learners::PerDevice& per_device = learners.per_device();
  if (per_device.has_growth()) check_growth(per_device.growth(), issues);
  dataflow::check_fields(learners, "learners", issues);
  options.learners_are_given = per_device.count_case() != v1::Learners::PerDevice::COUNT_NOT_SET;
  if (per_device.has_team()) options.team = per_device.team();
  options.tunes_team = per_device.has_auto_() && !per_device.has_team();
  options.chooses_team = !per_device.has_auto_() && !per_device.has_team();
  switch (per_device.count_case()) {
    case v1::Learners::PerDevice::kAuto: return read_auto(per_device.auto_(), options, issues);
    case v1::Learners::PerDevice::kSchedule: return read_schedule(per_device.schedule(), options, issues);
    case v1::Learners::PerDevice::kGrowth:
      return read_growth(*learners.mutable_per_device()->mutable_growth(), options, issues);
    case v1::Learners::PerDevice::kFixed:
      options.learners_per_device.assign(options.devices.size(), per_device.fixed());
      return;
    case v1::Learners::PerDevice::COUNT_NOT_SET: break;
  }
  std::vector<int>& counts = options.learners_per_device;
  for (const engine::DeviceSpec& device : options.devices) counts.push_back(default_learners(device));
  const bool are_equal = std::ranges::adjacent_find(counts, std::ranges::not_equal_to()) == counts.end();
  if (!counts.empty() && are_equal) learners.mutable_per_device()->set_fixed(counts[0]);
}

std::vector<SchemePhase> scheme_phases(const JobOptions& options, int learners) {
  std::vector<SchemePhase> phases{
      {options.synchronization, options.synchronization_path, learners, options.learning_rate.with_learners}};
  for (const SynchronizationSwitch& each : options.switches) {
    if (!each.learners_per_device.empty()) learners = total(each.learners_per_device);
    phases.push_back({each.to, each.path, learners, each.with_learners});
  }
  return phases;
}

namespace {

// The smallest number of learners at any time, over all devices.
int fewest_learners(const JobOptions& options) {
  if (options.tuned) return static_cast<int>(options.devices.size()) * options.tuned->min;
  int fewest = total(options.learners_per_device);
  for (const LearnerStep& step : options.schedule) fewest = std::min(fewest, total(step.per_device));
  return fewest;
}

}  // namespace

void check_stability(JobOptions& options, dataflow::FieldIssues& issues) {
  const sma::Options& synchronization = options.synchronization;
  const std::string path = field_at_fault(synchronization, options.synchronization_path);
  const std::vector<SchemePhase> phases = scheme_phases(options, most_learners(options));
  for (const SchemePhase& phase : std::span(phases).subspan(1)) {
    issues.add(field_at_fault(phase.scheme, phase.path), instability(phase.learners, phase.scheme));
  }
  // If momentum follows from the number of learners, few learners are the less stable.
  const std::vector<SchemePhase> fewest = scheme_phases(options, fewest_learners(options));
  for (const SchemePhase& phase : fewest) {
    issues.add(field_at_fault(phase.scheme, phase.path), instability(phase.learners, phase.scheme));
  }
  if (!options.tuned) {
    issues.add(path, instability(most_learners(options), synchronization));
    return;
  }
  const int devices = static_cast<int>(options.devices.size());
  issues.add(path, instability(devices * options.tuned->min, synchronization));
  const int before = options.tuned->max;
  while (options.tuned->max > options.tuned->min &&
         !instability(devices * options.tuned->max, synchronization).empty()) {
    --options.tuned->max;
  }
  if (options.tuned->max == before) return;
  warn_of_bound(options, options.tuned->max_is_given ? ".auto.max" : ".auto",
                instability(devices * (options.tuned->max + 1), synchronization));
}

std::string instability_of_all(const JobOptions& options) {
  for (const SchemePhase& phase : scheme_phases(options, most_learners_of_all(options))) {
    if (std::string text = instability(phase.learners, phase.scheme); !text.empty()) return phase.path + ": " + text;
  }
  return "";
}

namespace {

// The field that makes the phase's rounds long.
std::string period_field(const SchemePhase& phase) {
  return phase.path + (phase.scheme.scheme == sma::Scheme::kAsyncSgd ? ".push_every" : ".period");
}

std::string round_problem(const SchemePhase& phase, std::int64_t batches) {
  return check_round(phase.learners, phase.scheme, batches);
}

}  // namespace

std::string long_round(const JobOptions& options, int learners, std::int64_t batches) {
  for (const SchemePhase& phase : scheme_phases(options, learners)) {
    if (std::string problem = round_problem(phase, batches); !problem.empty()) return problem;
  }
  return "";
}

std::string long_round(const JobOptions& options, std::int64_t batches) {
  return long_round(options, options.tuned ? fewest_learners(options) : most_learners_of_all(options), batches);
}

void check_rounds(const v1::Learners& learners, std::int64_t batches, JobOptions& options,
                  dataflow::FieldIssues& issues) {
  if (!options.tuned) {
    const std::vector<SchemePhase> phases = scheme_phases(options, most_learners(options));
    const std::string path = learners.per_device().has_growth() ? ".growth"
                             : options.schedule.empty()         ? ".fixed"
                                                                : ".schedule";
    const std::string of_learners = options.learners_are_given ? kPath + path : "training.batch_size";
    for (const SchemePhase& phase : phases) {
      const bool fits_with_period_1 = phase.learners <= batches;
      issues.add(fits_with_period_1 ? period_field(phase) : of_learners, round_problem(phase, batches));
    }
    return;
  }
  const auto problem = [&](int count) { return long_round(options, count, batches); };
  const int devices = static_cast<int>(options.devices.size());
  issues.add(std::string(kPath) + ".auto.min", problem(devices * options.tuned->min));
  if (options.tuned->max_is_given) {
    issues.add(std::string(kPath) + ".auto.max", problem(devices * options.tuned->max));
    return;
  }
  const int before = options.tuned->max;
  while (options.tuned->max > options.tuned->min && !problem(devices * options.tuned->max).empty()) {
    --options.tuned->max;
  }
  if (options.tuned->max < before) warn_of_bound(options, ".auto", problem(devices * (options.tuned->max + 1)));
}

std::string unreached_steps(const JobOptions& options, std::int64_t batches) {
  const auto end = static_cast<std::uint64_t>(batches) * static_cast<std::uint64_t>(options.training.max_epochs);
  // Epochs of a growth are below max_epochs.
  const auto first =
      std::ranges::find_if(options.schedule, [&](const LearnerStep& step) { return step.at_batch >= end; });
  if (first == options.schedule.end()) return "";
  return fmt::format("{}.schedule: step[{}] stands at mini-batch {}, but the run ends after {} ({}): it {} no effect",
                     kPath, first - options.schedule.begin(), first->at_batch, end,
                     counted(options.training.max_epochs, "epoch"),
                     std::next(first) == options.schedule.end() ? "has" : "and what follows it have");
}

bool may_resize(const JobOptions& options) { return options.tuned || options.schedule.size() > 1; }

int most_learners(const JobOptions& options) {
  if (options.tuned) return static_cast<int>(options.devices.size()) * options.tuned->max;
  int most = total(options.learners_per_device);
  for (const LearnerStep& step : options.schedule) most = std::max(most, total(step.per_device));
  return most;
}

int most_learners_of_device(const JobOptions& options) {
  if (options.tuned) return options.tuned->max;
  int most = std::ranges::max(options.learners_per_device);
  const auto count = [&](const std::vector<int>& per_device) {
    if (!per_device.empty()) most = std::max(most, std::ranges::max(per_device));
  };
  for (const LearnerStep& step : options.schedule) count(step.per_device);
  for (const SynchronizationSwitch& each : options.switches) count(each.learners_per_device);
  return most;
}

}  // namespace arbalest::jobs
