#include "options/readers/team_check.h"

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include "messages/text.h"
#include "options/readers/learners_reader.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kPath = "learners.per_device.team";

// Returns why no team can have several learners; "" if one can.
std::string reason_against(const JobOptions& options, bool is_split) {
  for (const engine::DeviceSpec& device : options.devices) {
    if (!device.is_cuda())
      return fmt::format("learners on a CPU have threads of their own, and '{}' is one", device.name);
  }
  if (is_split) return "a device that shares layers with others has one learner";
  for (const SchemePhase& phase : scheme_phases(options, most_learners(options))) {
    const sma::SynchronizationMode mode = phase.scheme.mode(phase.learners);
    if (mode != sma::SynchronizationMode::kServer && mode != sma::SynchronizationMode::kShared) continue;
    return fmt::format("under {} each learner takes its steps when it is ready", phase.path);
  }
  return "";
}

// The largest number up to `team` that divides all numbers of learners.
int largest_team(int team, std::span<const int> learners) {
  for (int size = team; size > 1; --size) {
    if (std::ranges::all_of(learners, [size](int count) { return count % size == 0; })) return size;
  }
  return 1;
}

}  // namespace

void check_team(JobOptions& options, bool is_split, dataflow::FieldIssues& issues) {
  const bool has_teams = reason_against(options, is_split).empty();
  options.tunes_team = options.tunes_team && has_teams;
  options.chooses_team = options.chooses_team && has_teams;
  if (options.team == 1 || issues.has_within("learners")) return;
  if (const std::string reason = reason_against(options, is_split); !reason.empty()) {
    issues.add(kPath, fmt::format("no teams of {}: {}; remove team, or set it to 1", options.team, reason));
    return;
  }
  if (options.tuned || !options.schedule.empty()) return;  // teams follow the number of learners
  const int largest = largest_team(options.team, options.learners_per_device);
  if (largest == options.team) return;
  const int learners = std::ranges::min(options.learners_per_device);
  issues.add(kPath, options.team > learners
                        ? fmt::format("a team of {} is larger than the {} of a device; the largest that works is {}",
                                      options.team, counted(learners, "learner"), largest)
                        : fmt::format("{} cannot be divided into teams of {}; the largest that works is {}",
                                      counted(learners, "learner"), options.team, largest));
}

std::vector<std::string> learner_settings(const JobOptions& job, int learners) {
  std::vector<std::string> settings{fmt::format("learners.per_device.fixed={}", learners)};
  if (job.team > 1) {
    settings.push_back(fmt::format("learners.per_device.team={}", largest_team(job.team, std::span(&learners, 1))));
  }
  return settings;
}

}  // namespace arbalest::jobs
