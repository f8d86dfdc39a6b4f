#include "jobs/run/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <numeric>
#include <optional>

#include "engine/error.h"
#include "jobs/export/safetensors.h"
#include "jobs/messages/failure.h"
#include "jobs/messages/text.h"
#include "jobs/run/learners/learner_changes.h"
#include "jobs/run/model_scores.h"
#include "jobs/run/output_space.h"
#include "jobs/run/session.h"
#include "jobs/run/weights/initial_weights.h"

namespace arbalest::jobs {

namespace {

using Clock = std::chrono::steady_clock;

double mean_of(double sum, std::int64_t count) { return count == 0 ? 0.0 : sum / static_cast<double>(count); }

// The name of a signal: "SIGINT".
std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

// The absolute path; "" for "".
std::string absolute(const std::string& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
}

class Trainer {
 public:
  Trainer(const JobOptions& job, const RunContext& context) : job_(job), context_(context), scores_(job) {
    summary_.job = job.name;
    summary_.metric = job.data.input.has_ids() ? Metric::kRmse : Metric::kAccuracy;
    summary_.precision = job.training.precision;
    summary_.seed = job.training.seed;
    summary_.accuracy_set = scores_.accuracy_set();
    count_learners();
    for (const engine::DeviceSpec& device : job.devices) summary_.devices.push_back(device.name);
  }

  RunSummary run() {
    try {
      if (!context_.output_directory.empty()) check_output_space(context_.output_directory, *job_.graph);
      for (RunObserver* observer : context_.observers) observer->on_prepare();
      if (job_.initialize) weights_ = read_initial_weights(*job_.initialize, *job_.graph);
      session_ = open_session(job_, context_.data_root, Session::Purpose::kTraining, context_.device_options);
      if (weights_) load_initial_weights(*weights_, session_->scheduler());
      count_learners();  // the session may have fewer learners than the job
      session_->training_ring().set_observer(context_.training_input);
      session_->test_ring().set_observer(context_.evaluation_input);
      if (session_->validation_ring() != nullptr) session_->validation_ring()->set_observer(context_.evaluation_input);
      changes_ = make_learner_changes(job_, *session_, context_.learner_cache);
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
  double seconds_since(Clock::time_point start) const {
    return std::chrono::duration<double>(context_.now() - start).count();
  }

  bool stop_requested() const { return context_.stop_signal != nullptr && *context_.stop_signal != 0; }

  void count_learners() {
    summary_.learners_per_device = job_.learners_per_device;
    summary_.learners = std::accumulate(job_.learners_per_device.begin(), job_.learners_per_device.end(), 0);
  }

  // "8 layers, 431,080 parameters, 5,010 of them trained"
  std::string model_text() const {
    const std::int64_t parameters = session_->parameters();
    const std::int64_t trained = session_->trained_parameters();
    return fmt::format("{}, {}{}", counted(static_cast<std::int64_t>(job_.graph->nodes().size()), "layer"),
                       counted(parameters, "parameter"),
                       trained == parameters ? "" : fmt::format(", {} of them trained", grouped(trained)));
  }

  // "mnist train: 54,000 training, 6,000 validation and 10,000 test examples"
  std::string data_text() const {
    const std::int64_t validation = session_->validation_examples();
    return fmt::format("{}: {} training{} and {}", session_->training_data().name(),
                       grouped(session_->training_data().size()),
                       validation == 0 ? "" : fmt::format(", {} validation", grouped(validation)),
                       counted(session_->test_examples(), "test example"));
  }

  void announce() {
    const RunStart start{.job = job_.name,
                         .model = model_text(),
                         .data = data_text(),
                         .weights = weights_ ? weights_->text() : "",
                         .devices = summary_.devices,
                         .learners_per_device = summary_.learners_per_device,
                         .is_tuned = job_.tuned.has_value(),
                         .learners_change = describe_changes(job_),
                         .classes = job_.data.input.classes,
                         .metric = summary_.metric,
                         .batch_size = job_.training.batch_size,
                         .precision = job_.training.precision,
                         .max_epochs = job_.training.max_epochs,
                         .target_accuracy = job_.training.target_accuracy,
                         .accuracy_set = scores_.accuracy_set(),
                         .dropped_examples = session_->training_order().dropped_examples(),
                         .elapsed_seconds = seconds_since(start_),
                         .warnings = job_.warnings,
                         .data_root = absolute(context_.data_root),
                         .output_directory = context_.output_directory,
                         .job_text = job_.resolved_text};
    for (RunObserver* observer : context_.observers) observer->on_start(start);
  }

  // An observer that fails itself (the disk is full) must not hide why the run failed.
  void fail(const std::exception& error) noexcept {
    try {
      summary_.status = RunStatus::kFailed;
      summary_.message = as_error(error).what();
      finish();
    } catch (const std::exception&) {
      return;  // the caller rethrows the first error
    }
  }

  // Trains until the target, the last epoch, a stop signal or divergence; sets the status.
  void train() {
    summary_.status = RunStatus::kCompleted;
    try {
      for (int epoch = 1; epoch <= job_.training.max_epochs; ++epoch) {
        if (!train_epoch(epoch)) {
          summary_.status = RunStatus::kStopped;
          summary_.message = fmt::format("stopped by {} after {}", signal_name(*context_.stop_signal),
                                         epochs_text(summary_.epochs_begun));
          return;
        }
        if (evaluate_epoch(epoch)) {
          summary_.status = RunStatus::kTargetReached;
          return;
        }
      }
    } catch (const engine::Error& error) {
      if (error.kind() != engine::ErrorKind::kDiverged) throw;
      summary_.status = RunStatus::kDiverged;
      summary_.message = error.what();
    }
  }

  // Returns false if a signal ended the epoch early. An epoch ends at the first round boundary at or after its last
  // mini-batch.
  bool train_epoch(int epoch) {
    scheduler::Scheduler& scheduler = session_->scheduler();
    const auto end =
        static_cast<std::uint64_t>(epoch) * static_cast<std::uint64_t>(session_->training_order().batches_per_epoch());
    epoch_ = {};
    epoch_start_ = context_.now();
    if (epoch == 1) training_start_ = epoch_start_;
    scores_.forget();
    try {
      round_start_ = context_.now();
      while (scheduler.batches() < end && !stop_requested()) {
        switch_synchronization();
        change_learners();
        epoch_learning_rate_ = static_cast<double>(scheduler.learning_rate());
        account(scheduler.advance(session_->training_ring(), 1));
        report_progress();
      }
      if (scheduler.batches() < end) {
        for (RunObserver* observer : context_.observers) observer->on_stop(*context_.stop_signal);
      }
      account(scheduler.drain());
    } catch (const engine::Error&) {
      account_epoch();
      throw;
    }
    account_epoch();
    if (epoch_.examples == 0 && epoch_.tasks > 0) {
      engine::fail(engine::ErrorKind::kData,
                   "no example of the training data can be read; `arbalest data verify` names them with their reasons");
    }
    return scheduler.batches() >= end;
  }

  // Adds the results of the tasks that have ended since the last call.
  void account(const scheduler::Progress& progress) {
    epoch_.add(progress);
    const Clock::time_point now = context_.now();
    if (changes_) changes_->observe(progress, std::chrono::duration<double>(now - round_start_).count());
    round_start_ = now;
  }

  void change_learners() {
    if (!changes_) return;
    scheduler::Scheduler& scheduler = session_->scheduler();
    const std::uint64_t batch = scheduler.batches();
    const auto change = changes_->due(batch);
    if (!change) return;
    const ResizeRow row{.batch = batch,
                        .epoch = scheduler.progress(),
                        .elapsed_seconds = seconds_since(start_),
                        .from = summary_.learners_per_device,
                        .to = change->to,
                        .reason = change->reason,
                        .evidence = change->evidence};
    if (row.to != row.from) {
      epoch_.add(scheduler.drain());
      session_->resize(row.to);
      job_.learners_per_device = row.to;
      count_learners();
      round_start_ = context_.now();
    }
    for (RunObserver* observer : context_.observers) observer->on_resize(row);
  }

  // Carries out the switches that are due before the next stride.
  void switch_synchronization() {
    scheduler::Scheduler& scheduler = session_->scheduler();
    for (; next_switch_ < job_.switches.size() && scheduler.progress() >= job_.switches[next_switch_].at_epoch;
         ++next_switch_) {
      const SynchronizationSwitch& to = job_.switches[next_switch_];
      SwitchRow row{.batch = scheduler.batches(),
                    .epoch = scheduler.progress(),
                    .elapsed_seconds = seconds_since(start_),
                    .from = synchronization_,
                    .to = std::string(sma::name_of(to.to.scheme)),
                    .learners_per_device = {}};
      epoch_.add(scheduler.drain());
      if (changes_) changes_->settle();
      session_->switch_to(to);
      synchronization_ = row.to;
      if (!to.learners_per_device.empty()) job_.learners_per_device = to.learners_per_device;
      count_learners();
      row.learners_per_device = summary_.learners_per_device;
      round_start_ = context_.now();
      for (RunObserver* observer : context_.observers) observer->on_switch(row);
    }
  }

  void account_epoch() {
    epoch_seconds_ = seconds_since(epoch_start_);
    training_seconds_ += epoch_seconds_;
    summary_.examples += epoch_.examples;
    summary_.epochs_begun = epochs(summary_.examples);
  }

  double epochs(std::int64_t examples) const {
    const dataflow::ShuffledOrder& order = session_->training_order();
    return static_cast<double>(examples) / static_cast<double>(order.batches_per_epoch() * order.batch_size());
  }

  void report_progress() {
    constexpr double kInterval = 0.25;  // seconds
    const double elapsed = seconds_since(start_);
    if (epoch_.examples == 0 || elapsed < next_report_) return;
    next_report_ = elapsed + kInterval;
    const double done = epochs(summary_.examples + epoch_.examples);
    const double left = std::max(0.0, static_cast<double>(job_.training.max_epochs) - done);
    const RunProgress progress{.epoch = done,
                               .max_epochs = job_.training.max_epochs,
                               .train_loss = mean_of(epoch_.loss_sum, epoch_.examples),
                               .images_per_second = static_cast<double>(epoch_.examples) / seconds_since(epoch_start_),
                               .elapsed_seconds = elapsed,
                               .remaining_seconds = seconds_since(training_start_) / done * left};
    for (RunObserver* observer : context_.observers) observer->on_progress(progress);
  }

  // Returns whether the target is reached.
  bool evaluate_epoch(int epoch) {
    const Clock::time_point evaluation_start = context_.now();
    scores_.evaluate(*session_);
    const double evaluation_seconds = seconds_since(evaluation_start);
    const double elapsed = seconds_since(start_);
    const bool reached = scores_.count_epoch();
    if (reached) summary_.time_to_accuracy_seconds = elapsed;
    summary_.epochs = epoch;
    EpochRow row{.epoch = epoch,
                 .train_loss = mean_of(epoch_.loss_sum, epoch_.examples),
                 .images_per_second = static_cast<double>(epoch_.examples) / epoch_seconds_,
                 .elapsed_seconds = elapsed,
                 .learning_rate = epoch_learning_rate_,
                 .learners_per_device = summary_.learners_per_device,
                 .replica_distance = epoch_.replica_distance,
                 .replica_spread = epoch_.replica_spread,
                 .training_seconds = epoch_seconds_,
                 .evaluation_seconds = evaluation_seconds,
                 .host_microseconds_per_step = mean_of(1e6 * epoch_.host_seconds, epoch_.tasks)};
    if (summary_.metric == Metric::kAccuracy) row.train_accuracy = mean_of(epoch_.correct, epoch_.examples);
    scores_.write_to(row);
    if (job_.reports_loss_gap) row.averaging_loss_gap = scores_.loss_gap(*session_);
    for (RunObserver* observer : context_.observers) observer->on_epoch(row);
    scores_.require_finite(fmt::format("after epoch {}", epoch));
    return reached;
  }

  void save(const std::vector<dataflow::NamedTensor>& model) {
    if (context_.output_directory.empty()) return;
    const std::filesystem::path path = std::filesystem::path(context_.output_directory) / "model.safetensors";
    summary_.model_sha256 = write_safetensors(path, model, {{"format", "arbalest"}, {"job", job_.name}});
  }

  // Saves before evaluating, so that a second signal does not cost the model.
  void save_and_evaluate() {
    scheduler::Scheduler& scheduler = session_->scheduler();
    // Statistics are not re-estimated then, because that takes time.
    const bool is_cut_short = summary_.status == RunStatus::kStopped || summary_.status == RunStatus::kDiverged;
    if (is_cut_short) save(scheduler.snapshot(scheduler::Statistics::kAveraged));
    save(scheduler.snapshot());
    if (scores_.is_known()) return;
    scores_.evaluate(*session_);  // the run ended within an epoch
    const std::string problem = scores_.problem();
    if (summary_.status == RunStatus::kStopped && !problem.empty()) {
      summary_.status = RunStatus::kDiverged;
      summary_.message += fmt::format("; training had diverged: {}", problem);
    }
  }

  // Calls all observers even if one fails; then throws the first error.
  void finish() {
    scores_.write_to(summary_);
    if (session_) {
      summary_.skipped_examples = session_->skipped_examples();
      summary_.first_skipped = session_->first_skipped();
    }
    summary_.train_seconds = seconds_since(start_);
    summary_.images_per_second =
        training_seconds_ > 0.0 ? static_cast<double>(summary_.examples) / training_seconds_ : 0.0;
    std::exception_ptr failure;
    for (RunObserver* observer : context_.observers) {
      try {
        observer->on_finish(summary_);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  JobOptions job_;
  const RunContext& context_;
  const Clock::time_point start_ = context_.now();
  std::optional<InitialWeights> weights_;  // saved weights that the run starts from
  std::unique_ptr<Session> session_;
  std::unique_ptr<LearnerChanges> changes_;  // declared after session_, which it uses
  ModelScores scores_;
  RunSummary summary_;
  scheduler::Progress epoch_;  // of the present epoch
  Clock::time_point epoch_start_;
  Clock::time_point round_start_;
  double epoch_seconds_ = 0.0;
  double epoch_learning_rate_ = 0.0;  // in its last round
  Clock::time_point training_start_;
  double training_seconds_ = 0.0;  // evaluation not included
  double next_report_ = 0.0;
  std::size_t next_switch_ = 0;
  std::string synchronization_{sma::name_of(job_.synchronization.scheme)};  // present scheme
};

}  // namespace

RunSummary train(const JobOptions& job, const RunContext& context) { return Trainer(job, context).run(); }

DryRun dry_run(const JobOptions& job, const RunContext& context) {
  JobOptions fitting = job;
  std::optional<InitialWeights> weights;
  if (job.initialize) weights = read_initial_weights(*job.initialize, *job.graph);
  const auto session = open_session(fitting, context.data_root, Session::Purpose::kTraining, context.device_options);
  scheduler::Scheduler& scheduler = session->scheduler();
  if (weights) load_initial_weights(*weights, scheduler);
  scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
  progress.add(scheduler.drain());
  ModelScores scores(fitting);
  scores.evaluate(*session);
  scores.require_finite("after one round");
  const std::string text =
      fmt::format("{}: one round of {} trained (loss {}), {}", job.name, counted(progress.tasks, "mini-batch"),
                  loss_text(mean_of(progress.loss_sum, progress.examples)), scores.text());
  return {text, fitting.warnings};
}

}  // namespace arbalest::jobs
