#include "jobs/run/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <numeric>
#include <optional>

#include "engine/error.h"
#include "jobs/export/safetensors.h"
#include "jobs/report/failure.h"
#include "jobs/report/text.h"
#include "jobs/run/accuracy_target.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double per_example(double sum, std::int64_t examples) {
  return examples == 0 ? 0.0 : sum / static_cast<double>(examples);
}

class Trainer {
 public:
  Trainer(const JobOptions& job, const RunContext& context)
      : job_(job), context_(context), target_(job.training.target_accuracy) {
    summary_.job = job.name;
    summary_.seed = job.training.seed;
    summary_.learners_per_device = job.learners_per_device;
    summary_.learners = std::accumulate(summary_.learners_per_device.begin(), summary_.learners_per_device.end(), 0);
    for (const engine::DeviceSpec& device : job.devices) summary_.devices.push_back(device.name);
  }

  RunSummary run() {
    try {
      session_.emplace(job_, context_.data_root, Session::Purpose::kTraining, context_.device_options);
      announce();
      train();
      save_and_evaluate();
    } catch (const std::exception& error) {
      fail(error);
      throw;
    }
    finish();
    return summary_;
  }

 private:
  bool stop_requested() const { return context_.stop_signal != nullptr && *context_.stop_signal != 0; }

  void announce() {
    const RunStart start{
        .job = job_.name,
        .model = fmt::format("{}, {}", counted(static_cast<std::int64_t>(job_.graph->nodes().size()), "layer"),
                             counted(session_->parameters(), "parameter")),
        .data = fmt::format("{}: {} training and {}", session_->training_data().name(),
                            grouped(session_->training_data().size()),
                            counted(session_->test_data().size(), "test example")),
        .devices = summary_.devices,
        .learners_per_device = summary_.learners_per_device,
        .batch_size = job_.training.batch_size,
        .max_epochs = job_.training.max_epochs,
        .target_accuracy = job_.training.target_accuracy,
        .dropped_examples = session_->training_order().dropped_examples(),
        .warnings = job_.warnings,
        .output_directory = context_.output_directory};
    for (RunObserver* observer : context_.observers) observer->on_start(start);
  }

  // Tells the observers; one that fails itself (the disk is full) must not hide why the run failed.
  void fail(const std::exception& error) noexcept {
    try {
      summary_.status = RunStatus::kFailed;
      summary_.message = as_error(error).what();
      finish();
    } catch (const std::exception&) {
      return;  // the caller rethrows the first error
    }
  }

  // Epochs until the target, the last one, a stop signal or divergence; sets the status.
  void train() {
    summary_.status = RunStatus::kCompleted;
    try {
      for (int epoch = 1; epoch <= job_.training.max_epochs; ++epoch) {
        if (!train_epoch(epoch)) {
          summary_.status = RunStatus::kStopped;
          summary_.message = "stopped by a signal";
          return;
        }
        if (evaluate_epoch(epoch)) {
          summary_.status = RunStatus::kTargetReached;
          return;
        }
      }
      if (stop_requested()) summary_.status = RunStatus::kStopped;
    } catch (const engine::Error& error) {
      if (error.kind() != engine::ErrorKind::kDiverged) throw;
      summary_.status = RunStatus::kDiverged;
      summary_.message = error.what();
    }
  }

  // False if a signal ended it early. An epoch ends at the first round boundary at or after its last mini-batch.
  bool train_epoch(int epoch) {
    scheduler::Scheduler& scheduler = session_->scheduler();
    const auto end =
        static_cast<std::uint64_t>(epoch) * static_cast<std::uint64_t>(session_->training_order().batches_per_epoch());
    epoch_ = {};
    epoch_start_ = Clock::now();
    evaluation_.reset();
    try {
      while (scheduler.batches() < end && !stop_requested()) {
        epoch_learning_rate_ = static_cast<double>(scheduler.learning_rate());
        epoch_.add(scheduler.advance(session_->training_ring(), 1));
        report_progress();
      }
      epoch_.add(scheduler.drain());
    } catch (const engine::Error&) {
      account_epoch();
      throw;
    }
    account_epoch();
    return scheduler.batches() >= end;
  }

  void account_epoch() {
    epoch_seconds_ = seconds_since(epoch_start_);
    training_seconds_ += epoch_seconds_;
    examples_ += epoch_.examples;
  }

  void report_progress() {
    constexpr double kInterval = 0.25;  // seconds
    const double elapsed = seconds_since(start_);
    if (elapsed < next_report_) return;
    next_report_ = elapsed + kInterval;
    const double done = session_->scheduler().progress();
    const double remaining = static_cast<double>(job_.training.max_epochs) - done;
    const double in_epoch = seconds_since(epoch_start_);
    const RunProgress progress{.epoch = done,
                               .max_epochs = job_.training.max_epochs,
                               .train_loss = per_example(epoch_.loss_sum, epoch_.examples),
                               .images_per_second = static_cast<double>(epoch_.examples) / in_epoch,
                               .elapsed_seconds = elapsed,
                               .remaining_seconds = done > 0.0 ? elapsed / done * remaining : 0.0};
    for (RunObserver* observer : context_.observers) observer->on_progress(progress);
  }

  // True if the target is reached.
  bool evaluate_epoch(int epoch) {
    scheduler::Scheduler& scheduler = session_->scheduler();
    evaluation_ = scheduler.evaluate(session_->test_ring());
    const scheduler::Evaluation& evaluation = *evaluation_;
    const double elapsed = seconds_since(start_);
    const bool reached = target_.add(evaluation.accuracy);
    summary_.best_test_accuracy = target_.best();
    if (reached) summary_.time_to_accuracy_seconds = elapsed;
    summary_.epochs = epoch;
    const EpochRow row{.epoch = epoch,
                       .train_loss = per_example(epoch_.loss_sum, epoch_.examples),
                       .test_loss = evaluation.loss,
                       .test_accuracy = evaluation.accuracy,
                       .images_per_second = static_cast<double>(epoch_.examples) / epoch_seconds_,
                       .elapsed_seconds = elapsed,
                       .learning_rate = epoch_learning_rate_,
                       .learners_per_device = summary_.learners_per_device,
                       .replica_distance = epoch_.replica_distance};
    for (RunObserver* observer : context_.observers) observer->on_epoch(row);
    return reached;
  }

  // Saves first: a second signal must not cost the model.
  void save_and_evaluate() {
    scheduler::Scheduler& scheduler = session_->scheduler();
    const std::vector<dataflow::NamedTensor> model = scheduler.snapshot();
    if (!context_.output_directory.empty()) {
      const std::filesystem::path path = std::filesystem::path(context_.output_directory) / "model.safetensors";
      summary_.model_sha256 = write_safetensors(path, model, {{"format", "arbalest"}, {"job", job_.name}});
    }
    if (!evaluation_.has_value()) evaluation_ = scheduler.evaluate(session_->test_ring());  // stopped within an epoch
    summary_.test_loss = evaluation_->loss;
    summary_.test_accuracy = evaluation_->accuracy;
    summary_.best_test_accuracy = std::max(target_.best(), evaluation_->accuracy);
  }

  void finish() {
    summary_.train_seconds = seconds_since(start_);
    summary_.images_per_second = training_seconds_ > 0.0 ? static_cast<double>(examples_) / training_seconds_ : 0.0;
    for (RunObserver* observer : context_.observers) observer->on_finish(summary_);
  }

  const JobOptions& job_;
  const RunContext& context_;
  const Clock::time_point start_ = Clock::now();
  std::optional<Session> session_;
  AccuracyTarget target_;
  std::optional<scheduler::Evaluation> evaluation_;  // of the model as it is now
  RunSummary summary_;
  scheduler::Progress epoch_;  // of the epoch under way
  Clock::time_point epoch_start_;
  double epoch_seconds_ = 0.0;
  double epoch_learning_rate_ = 0.0;  // of its last round
  double training_seconds_ = 0.0;
  std::int64_t examples_ = 0;
  double next_report_ = 0.0;
};

}  // namespace

RunSummary train(const JobOptions& job, const RunContext& context) { return Trainer(job, context).run(); }

std::string dry_run(const JobOptions& job, const RunContext& context) {
  Session session(job, context.data_root, Session::Purpose::kTraining, context.device_options);
  scheduler::Scheduler& scheduler = session.scheduler();
  scheduler::Progress progress = scheduler.advance(session.training_ring(), 1);
  progress.add(scheduler.drain());
  const scheduler::Evaluation evaluation = scheduler.evaluate(session.test_ring());
  return fmt::format("{}: one round of {} trained (loss {:.4f}), {} evaluated (loss {:.4f})", job.name,
                     counted(progress.tasks, "mini-batch"),
                     unsigned_nan(per_example(progress.loss_sum, progress.examples)),
                     counted(evaluation.examples, "test example"), unsigned_nan(evaluation.loss));
}

EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context) {
  const std::vector<dataflow::NamedTensor> model = read_safetensors(model_path, sha256);
  Session session(job, context.data_root, Session::Purpose::kEvaluation, context.device_options);
  for (const dataflow::NamedTensor& tensor : model) {
    if (!std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); })) {
      engine::fail(engine::ErrorKind::kCheckpoint,
                   "'{}': tensor '{}' has values that are not finite: the file is damaged", model_path, tensor.name);
    }
  }
  try {
    session.scheduler().load(model);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}' does not fit the run's job: {}", model_path, error.what()));
  }
  const scheduler::Evaluation evaluation = session.scheduler().evaluate(session.test_ring());
  return {evaluation.loss, evaluation.accuracy, evaluation.examples};
}

}  // namespace arbalest::jobs
