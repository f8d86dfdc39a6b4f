#include "arbalest/training.h"

#include <atomic>
#include <exception>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "api/throwing.h"
#include "arbalest/error.h"
#include "engine/base/error.h"
#include "engine/process/world.h"
#include "messages/source_commit.h"
#include "options/loading/load_job.h"
#include "report/reopen/prepared_run.h"
#include "train/context/run_observer.h"
#include "train/train.h"

namespace arbalest {

namespace {

// `set`: "train", "test" or "validation".
void add(Metrics& metrics, const std::string& set, const jobs::Scores& scores) {
  for (const jobs::Score& score : scores) {
    if (score.value) metrics[set + "_" + score.name] = *score.value;
  }
}

Metrics metrics_of(const jobs::EpochRow& row) {
  Metrics metrics;
  add(metrics, "train", row.train);
  add(metrics, "test", row.test);
  add(metrics, "validation", row.validation);
  return metrics;
}

// `Summary`: jobs::RunSummary or jobs::SavedSummary
template <typename Summary>
Metrics metrics_of_end(const Summary& summary) {
  Metrics metrics;
  add(metrics, "test", summary.test);
  add(metrics, "validation", summary.validation);
  return metrics;
}

EpochResult epoch_result(const jobs::EpochRow& row) {
  return {.epoch = row.epoch,
          .metrics = metrics_of(row),
          .images_per_second = row.images_per_second,
          .elapsed_seconds = row.elapsed_seconds,
          .learning_rate = row.learning_rate,
          .learners_per_device = row.learners_per_device};
}

// Calls the functions of the user. The run's own code never sees their exceptions: the first one stops the run.
class Callbacks final : public jobs::RunObserver {
 public:
  explicit Callbacks(const TrainingOptions& options) : options_(options), on_stop_(options.stop, StopRun{stop_}) {}

  const std::atomic<int>& stop_signal() const noexcept { return stop_; }
  // Throws the exception of the user's function, if one has thrown.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  void warn(const std::string& text) {
    guard([&] {
      if (options_.on_warning) options_.on_warning(text);
    });
  }

  void on_start(const jobs::RunStart& start) override {
    for (const std::string& text : start.warnings) warn(text);
  }
  void on_progress(const jobs::RunProgress& row) override {
    if (!options_.on_progress) return;
    guard([&] {
      stop_if(options_.on_progress({row.epoch, row.max_epochs, row.train_loss, row.images_per_second,
                                    row.elapsed_seconds, row.remaining_seconds}));
    });
  }
  void on_epoch(const jobs::EpochRow& row) override {
    if (!options_.on_epoch) return;
    guard([&] { stop_if(options_.on_epoch(epoch_result(row))); });
  }
  void on_warning(const std::string& text) override { warn(text); }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

 private:
  struct StopRun {
    std::atomic<int>& stop;
    void operator()() const noexcept { stop = jobs::kStopOfCaller; }
  };

  void stop_if(Next next) {
    if (next == Next::kStop) stop_ = jobs::kStopOfCaller;
  }
  // After an exception no function of the user is called any more.
  template <typename Call>
  void guard(const Call& call) {
    if (thrown_) return;
    try {
      call();
    } catch (...) {
      thrown_ = std::current_exception();
      stop_ = jobs::kStopOfCaller;
    }
  }

  const TrainingOptions& options_;
  std::atomic<int> stop_{0};
  std::exception_ptr thrown_;
  std::stop_callback<StopRun> on_stop_;
};

jobs::JobOptions load(const TrainingOptions& options, std::span<const std::string> settings) {
  if (options.job_text.empty() && options.job_file.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "there is no job: set job_file or job_text");
  }
  if (options.job_text.empty()) return jobs::load_job(options.job_file, settings);
  const std::string name = options.job_file.empty() ? "job" : options.job_file;
  return jobs::parse_job(jobs::SourceText(name, options.job_text), settings);
}

TrainingStatus status_of(jobs::RunStatus status) {
  switch (status) {
    case jobs::RunStatus::kTargetReached: return TrainingStatus::kTargetReached;
    case jobs::RunStatus::kStopped: return TrainingStatus::kStopped;
    case jobs::RunStatus::kDiverged: return TrainingStatus::kDiverged;
    case jobs::RunStatus::kCompleted:
    case jobs::RunStatus::kFailed:  // jobs::train() throws then
      break;
  }
  return TrainingStatus::kCompleted;
}

TrainingSummary summary_of(const jobs::RunSummary& run, const std::string& directory) {
  return {.status = status_of(run.status),
          .message = run.message,
          .directory = directory,
          .metrics = metrics_of_end(run),
          .epochs = run.epochs,
          .train_seconds = run.train_seconds,
          .time_to_accuracy_seconds = run.time_to_accuracy_seconds,
          .images_per_second = run.images_per_second,
          .learners_per_device = run.learners_per_device,
          .devices = run.devices,
          .model_sha256 = run.model_sha256};
}

// Returns the summary of a run that has ended before and has nothing left to train.
TrainingSummary completed_summary(const std::string& message, const std::string& directory) {
  TrainingSummary summary{.message = message, .directory = directory};
  const std::optional<jobs::SavedSummary> saved = jobs::read_summary(directory);
  if (!saved) return summary;
  if (saved->status == "target_reached") summary.status = TrainingStatus::kTargetReached;
  summary.epochs = saved->epochs;
  summary.model_sha256 = saved->model_sha256;
  summary.metrics = metrics_of_end(*saved);
  return summary;
}

TrainingSummary run(const TrainingOptions& options, Callbacks& callbacks) {
  engine::process::World alone;
  const auto read = [&](std::span<const std::string> settings) { return load(options, settings); };
  const auto warn = [&callbacks](const std::string& text) { callbacks.warn(text); };
  jobs::PreparedRun run(read(options.settings),
                        {.location = {.output = options.output, .resume = options.resume},
                         .data_root = options.data_root,
                         .program = fmt::format("{} {}", ARBALEST_VERSION, jobs::source_commit()),
                         .settings = options.settings,
                         .read = read,
                         .warn = warn},
                        alone);
  const std::string directory = run.directory().path().string();
  if (!run.completed().text.empty()) return completed_summary(run.completed().text, directory);
  run.directory().warn_with(warn);
  run.context().observers.push_back(&callbacks);
  run.context().stop_signal = &callbacks.stop_signal();
  return summary_of(jobs::train(run.job(), run.context()), directory);
}

}  // namespace

TrainingSummary train(const TrainingOptions& options) {
  Callbacks callbacks(options);
  try {
    TrainingSummary summary = throwing_public_errors([&] { return run(options, callbacks); });
    callbacks.rethrow();
    return summary;
  } catch (const Error&) {
    callbacks.rethrow();  // it came first
    throw;
  }
}

}  // namespace arbalest
