#include "jobs/run/run_checkpoints.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/error.h"
#include "engine/host/topology.h"
#include "jobs/checkpoint/job_changes.h"
#include "jobs/messages/failure.h"
#include "jobs/run/data/dataset_fingerprint.h"

namespace arbalest::jobs {

namespace {

constexpr char kAndValidation = '+';  // between the fingerprints of the training set and of the validation set

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

std::vector<std::string> names_of(const std::vector<engine::DeviceSpec>& devices) {
  std::vector<std::string> names;
  for (const engine::DeviceSpec& device : devices) names.push_back(device.name);
  return names;
}

// A validation set with files of its own is part of the data that a run depends on: it decides when the run ends.
std::string fingerprint_of(const JobOptions& job, const Session& session) {
  std::string fingerprint = dataset_fingerprint(session.training_data());
  if (job.data.validation_files) {
    fingerprint += kAndValidation + dataset_fingerprint(session.evaluation_data(), session.test_examples(),
                                                        session.validation_examples());
  }
  return fingerprint;
}

void check_origin(const RunOrigin& saved, const RunOrigin& present, std::vector<std::string>& warnings) {
  if (saved.dataset != present.dataset) {
    const auto training = [](const std::string& both) { return both.substr(0, both.find(kAndValidation)); };
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the checkpoint was saved while training on other data: the {} set has changed since then; restore "
                 "it, or start a new run with another --output",
                 training(saved.dataset) == training(present.dataset) ? "validation" : "training");
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

void take_learners(const SavedRun& saved, JobOptions& job) {
  if (job.learners_are_given || job.tuned || saved.origin.devices != names_of(job.devices)) return;
  job.learners_per_device = saved.run.learners_per_device;
}

RunOrigin origin_of(const JobOptions& job, const Session& session, const std::string& program) {
  return RunOrigin{.program = program,
                   .processor = fmt::format("{} ({})", engine::host::processor_name(),
                                            fmt::join(engine::host::instruction_sets(), " ")),
                   .dataset = fingerprint_of(job, session),
                   .devices = names_of(job.devices)};
}

void resume(const SavedRun& saved, const RunOrigin& present, JobOptions& job, Session& session, RunState& state) {
  check_origin(saved.origin, present, job.warnings);
  state = saved.run;
  if (state.switches_done > job.switches.size()) {
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the checkpoint follows {} switches of synchronization, and the job has {}", state.switches_done,
                 job.switches.size());
  }
  const SynchronizationSwitch* last = state.switches_done > 0 ? &job.switches[state.switches_done - 1] : nullptr;
  const sma::Options& scheme = last != nullptr ? last->to : job.synchronization;
  const scheduler::RateScaling scaling = last != nullptr ? last->with_learners : job.learning_rate.with_learners;
  const bool same_devices = saved.origin.devices == present.devices;
  if (!job.learners_are_given && !job.tuned && same_devices) {
    state.learners_per_device = job.learners_per_device;  // take_learners, as far as memory allows
  } else if (!same_devices || (!job.tuned && asks_for_other_learners(saved.job_text, job))) {
    const double epochs =
        static_cast<double>(saved.training.batches) / static_cast<double>(session.training_order().batches_per_epoch());
    state.learner_steps_done = begun_steps(job, saved.training.batches, epochs);
    state.learners_per_device = learners_at(job, state, state.learner_steps_done);
  }
  if (job.tuned) {
    for (int& learners : state.learners_per_device) learners = std::clamp(learners, job.tuned->min, job.tuned->max);
  }
  session.restore(saved.training, scheme, scaling, state.learners_per_device);
}

RunCheckpoints::RunCheckpoints(const JobOptions& job, const RunContext& context, Session& session,
                               const ModelScores& scores, const RunState& state, std::function<double()> seconds)
    : job_(job),
      context_(context),
      session_(session),
      scores_(scores),
      state_(state),
      seconds_(std::move(seconds)),
      origin_(origin_of(job, session, context.program)),
      saver_(context.output_directory, job.checkpoint, scores.smaller_is_better(), session.scheduler().batches(),
             seconds_(), state.best_model) {}

bool RunCheckpoints::is_due() const {
  if (context_.save_requests != nullptr && *context_.save_requests != answered_requests_) return true;
  return saver_.is_due(batches(), seconds_(), std::nullopt);
}

RunState RunCheckpoints::state_now() const {
  RunState state = state_;
  state.elapsed_seconds = seconds_();
  state.skipped_examples += session_.skipped_examples();
  if (state.first_skipped.empty()) state.first_skipped = session_.first_skipped();
  state.scores = scores_.history();
  if (context_.log_bytes) state.metrics_bytes = context_.log_bytes();
  return state;
}

void RunCheckpoints::save(std::optional<double> score, bool is_best) {
  report(/*wait=*/true);  // there is memory for one copy of the state
  if (context_.save_requests != nullptr) answered_requests_ = *context_.save_requests;
  unless_short_of_memory([&] { copy_and_write(score, is_best); });
}

void RunCheckpoints::unless_short_of_memory(const std::function<void()>& save) {
  try {
    save();
  } catch (const std::exception& error) {
    if (!is_shortage(error)) throw;
    saver_.skip(batches(), seconds_());
    unsaved_ = as_error(error).what();
    warn(fmt::format("no memory for a copy of the run's state, so there is no checkpoint here: {}", unsaved_));
  }
}

void RunCheckpoints::warn(const std::string& text) {
  for (RunObserver* observer : context_.observers) observer->on_warning(text);
}

// At the end of an epoch the model is saved as it was evaluated, with its statistics re-estimated.
void RunCheckpoints::copy_and_write(std::optional<double> score, bool is_best) {
  scheduler::Tensors model;
  if (scores_.is_known()) model = session_.scheduler().snapshot();
  SavedRun saved{.run = state_now(),
                 .training = session_.scheduler().save(),
                 .model = std::move(model),
                 .origin = origin_,
                 .job_text = job_.resolved_text};
  saved.run.present_score = score;
  saved.run.best_model = is_best ? best_model(*score) : saver_.best();
  if (saved.model.empty()) saved.model = saved.training.average.empty() ? saved.training.model : saved.training.average;
  saver_.save(std::move(saved), seconds_(), is_best);
}

void RunCheckpoints::write_again(SavedRun saved) {
  const RunState now = state_now();
  saved.run.elapsed_seconds = now.elapsed_seconds;
  saved.run.skipped_examples = now.skipped_examples;
  saved.run.first_skipped = now.first_skipped;
  saved.run.metrics_bytes = now.metrics_bytes;
  saved.run.rollbacks = now.rollbacks;
  saved.run.scores.best_test = now.scores.best_test;
  saved.run.scores.best_validation = now.scores.best_validation;
  saved.run.best_model = saver_.best();
  saver_.save(std::move(saved), seconds_(), /*is_best=*/false);
  report(/*wait=*/true);
}

void RunCheckpoints::save_between_rounds() {
  report(/*wait=*/true);
  if (context_.save_requests != nullptr) answered_requests_ = *context_.save_requests;
  // The end of an epoch may have saved this point, with its evaluated model.
  if (!saver_.holds(batches())) {
    save(std::nullopt, /*is_best=*/false);
  } else {
    unsaved_.clear();
  }
}

void RunCheckpoints::save_after_epoch(bool is_last) {
  const std::optional<double> score = scores_.decisive_score();
  const bool is_best = score && saver_.is_best(*score);
  const bool is_due = is_last || this->is_due() || saver_.is_due(batches(), seconds_(), state_.epochs);
  if (is_due) {
    save(score, is_best);
  } else if (is_best) {
    unless_short_of_memory([&] { saver_.save_best(session_.scheduler().snapshot(), best_model(*score)); });
  }
}

void RunCheckpoints::require_saved() const {
  if (unsaved_.empty()) return;
  engine::fail(
      engine::ErrorKind::kOutOfMemory,
      "the run has stopped, but its state was not saved: {}; --resume=auto goes on from the checkpoint before, if "
      "there is one",
      unsaved_);
}

void refuse_save_requests(const RunContext& context, int& answered) {
  if (context.save_requests == nullptr || *context.save_requests == answered) return;
  answered = *context.save_requests;
  for (RunObserver* observer : context.observers) {
    observer->on_warning("SIGUSR1 asks for a checkpoint, but this job saves none (checkpoint.keep_last is 0)");
  }
}

void RunCheckpoints::report(bool wait) {
  while (const std::optional<SaveResult> result = saver_.take_result(wait)) {
    const double epochs =
        static_cast<double>(result->batches) / static_cast<double>(session_.training_order().batches_per_epoch());
    std::vector<std::string> warnings = result->warnings;
    if (result->is_checkpoint) unsaved_ = result->path.empty() ? result->failure : "";
    if (!result->failure.empty()) {
      warnings.push_back(fmt::format(
          "the checkpoint or best model of epoch {:.2f} {}: {}; the run goes on, and earlier checkpoints are "
          "intact",
          epochs, result->path.empty() ? "was not saved" : "was saved, older ones were not deleted", result->failure));
    }
    for (RunObserver* observer : context_.observers) {
      if (!result->path.empty()) observer->on_checkpoint({result->batches, epochs, seconds_(), result->path.string()});
      for (const std::string& warning : warnings) observer->on_warning(warning);
    }
  }
}

}  // namespace arbalest::jobs
