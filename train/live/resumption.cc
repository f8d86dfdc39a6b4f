#include "train/live/resumption.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/job/job_changes.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "messages/text.h"
#include "options/loading/load_job.h"
#include "options/readers/team_check.h"
#include "options/synchronization/job_schemes.h"
#include "train/data/dataset_fingerprint.h"
#include "train/processes/shared_learners.h"
#include "train/processes/shared_results.h"
#include "train/weights/saved_description.h"

namespace arbalest::jobs {

namespace {

// These precede the fingerprints of a validation set with files of its own, and of the test set.
constexpr char kAndValidation = '+';
constexpr char kAndTest = '/';

// The number of steps of the job's schedule that have begun at this point.
std::size_t begun_steps(const JobOptions& job, std::uint64_t batches, double epochs) {
  const auto has_begun = [&](const LearnerStep& step) {
    return step.at_epoch ? *step.at_epoch <= epochs : step.at_batch <= batches;
  };
  return static_cast<std::size_t>(std::ranges::count_if(job.schedule, has_begun));
}

// The learners of a job that asks for others than the checkpoint has.
std::vector<int> learners_at(const JobOptions& job, const RunState& state, std::size_t steps) {
  std::vector<int> learners = steps > 0 ? job.schedule[steps - 1].per_device : job.learners_per_device;
  for (std::size_t i = 0; i < state.switches_done; ++i) {
    if (!job.switches[i].learners_per_device.empty()) learners = job.switches[i].learners_per_device;
  }
  return learners;
}

// The learners that a tuned job goes on with, on each device of this process. If all processes have as many devices as
// the checkpoint, these are `own`, its numbers on the devices. With a different device count the learners are divided
// equally.
std::vector<int> tuned_learners(const std::vector<int>& saved, std::size_t all_devices, const std::vector<int>& own,
                                const LearnerBounds& bounds, int ceiling) {
  std::vector<int> learners = own;
  if (saved.size() != all_devices) {
    const int all = std::accumulate(saved.begin(), saved.end(), 0);
    const int devices = static_cast<int>(all_devices);
    std::ranges::fill(learners, (all + devices / 2) / devices);
  }
  for (int& count : learners) count = std::clamp(count, bounds.min, std::min(bounds.max, ceiling));
  return learners;
}

// The sets that evaluate a run are part of the data that it depends on: they decide when it ends, and tell its result.
std::string fingerprint_of(const JobOptions& job, const Session& session) {
  std::string fingerprint = dataset_fingerprint(session.training_data());
  if (job.data.validation_files) {
    fingerprint += kAndValidation + dataset_fingerprint(session.evaluation_data(), session.test_examples(),
                                                        session.validation_examples());
  }
  return fingerprint + kAndTest + dataset_fingerprint(session.evaluation_data(), 0, session.test_examples());
}

// Names the set that differs; "" if none does. Older checkpoints have no fingerprint of the test set.
std::string changed_set(const std::string& saved, const std::string& present) {
  const auto until = [](const std::string& text, char end) { return text.substr(0, text.find(end)); };
  if (until(saved, kAndTest) == until(present, kAndTest)) {
    return saved == present || saved.find(kAndTest) == std::string::npos ? "" : "test";
  }
  const bool is_training_same =
      until(until(saved, kAndTest), kAndValidation) == until(until(present, kAndTest), kAndValidation);
  return is_training_same ? "validation" : "training";
}

void check_origin(const RunOrigin& saved, const RunOrigin& present, std::vector<std::string>& warnings) {
  if (const std::string changed = changed_set(saved.dataset, present.dataset); !changed.empty()) {
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the checkpoint was saved while training on other data: the {} set has changed since then; restore "
                 "it, or start a new run with another --output",
                 changed);
  }
  const auto warn = [&](const char* what, const std::string& before, const std::string& now) {
    if (before == now) return;
    warnings.push_back(
        fmt::format("the checkpoint was saved with {} '{}', and this is '{}': the run goes on, but its last "
                    "digits may differ from those of a run that was never stopped",
                    what, before, now));
  };
  warn("the program", saved.program, present.program);
  warn("the processor", saved.processor, present.processor);
}

}  // namespace

void take_learners(const SavedRun& saved, const std::vector<int>& learners, const std::vector<std::string>& devices,
                   JobOptions& job) {
  if (job.learners_are_given || job.tuned || saved.origin.devices != devices) return;
  if (job.learners_per_device == learners) return;
  job.learners_per_device = learners;
  const bool are_equal = std::ranges::adjacent_find(learners, std::ranges::not_equal_to()) == learners.end();
  if (job.learners_elsewhere > 0 || !are_equal) return;
  const std::vector<std::string> settings = learner_settings(job, learners.front());
  job.resolved_text = parse_job(SourceText(job.name, job.resolved_text), settings).resolved_text;
}

void take_pixel_rules(const SavedRun& saved, JobOptions& job) {
  job.data.pixels = saved.pixels;
  if (job.data.kind != DataOptions::Kind::kImages && job.data.kind != DataOptions::Kind::kTfrecord) return;
  std::string note = old_rules_note(saved.pixels, "the checkpoint");
  if (!note.empty()) job.warnings.push_back(std::move(note));
}

RunOrigin origin_of(const JobOptions& job, const Session& session, const std::string& program,
                    const std::vector<std::string>& devices) {
  return RunOrigin{.program = program,
                   .processor = fmt::format("{} ({})", engine::host::processor_name(),
                                            fmt::join(engine::instruction_sets_in_force(), " ")),
                   .dataset = fingerprint_of(job, session),
                   .devices = devices};
}

void resume(SavedRun& saved, const std::vector<int>& learners, const RunOrigin& present, JobOptions& job,
            Session& session, engine::process::World& world, RunState& state) {
  state = saved.run;
  state.learners_per_device = learners;
  together(world, [&] {
    check_origin(saved.origin, present, job.warnings);
    if (state.switches_done <= job.switches.size()) return;
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the checkpoint was saved after {} of synchronization, but the job has only {}; restore the switches",
                 counted(static_cast<std::int64_t>(state.switches_done), "switch"), job.switches.size());
  });
  const SynchronizationSwitch* last = state.switches_done > 0 ? &job.switches[state.switches_done - 1] : nullptr;
  const sma::Options& scheme = present_scheme(job, state.switches_done);
  const scheduler::RateScaling scaling = last != nullptr ? last->with_learners : job.learning_rate.with_learners;
  const bool same_devices = saved.origin.devices == present.devices;
  if (job.tuned) {
    state.learners_per_device = tuned_learners(saved.run.learners_per_device, present.devices.size(), learners,
                                               *job.tuned, session.learner_ceiling());
  } else if (!job.learners_are_given && same_devices) {
    state.learners_per_device = job.learners_per_device;  // take_learners, as far as memory allows
  } else if (!same_devices || asks_for_other_learners(saved.job_text, job)) {
    const double epochs =
        static_cast<double>(saved.training.batches) / static_cast<double>(session.training_order().batches_per_epoch());
    state.learner_steps_done = begun_steps(job, saved.training.batches, epochs);
    state.learners_per_device = learners_at(job, state, state.learner_steps_done);
  }
  state.team = job.tunes_team ? std::max(job.team, saved.run.team) : 0;
  read_own_learners(world, state.learners_per_device, saved);
  together(world, [&] { session.restore(saved.training, scheme, scaling, state.learners_per_device, state.team); });
}

}  // namespace arbalest::jobs
