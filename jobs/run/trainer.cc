#include "jobs/run/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/error.h"
#include "jobs/checkpoint/job_changes.h"
#include "jobs/export/safetensors.h"
#include "jobs/messages/failure.h"
#include "jobs/messages/text.h"
#include "jobs/run/learners/learner_changes.h"
#include "jobs/run/model_scores.h"
#include "jobs/run/output_space.h"
#include "jobs/run/run_checkpoints.h"
#include "jobs/run/run_start.h"
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
    summary_.metric = metric_of(job);
    summary_.precision = job.training.precision;
    summary_.seed = job.training.seed;
    summary_.accuracy_set = scores_.accuracy_set();
    if (context.output_directory.empty()) job_.checkpoint.keep_last = 0;  // there is no place for checkpoints
    set_learners(job.learners_per_device);
    for (const engine::DeviceSpec& device : job.devices) summary_.devices.push_back(device.name);
  }

  RunSummary run() {
    try {
      const bool is_new = context_.resumed == nullptr;  // a resumed run has its checkpoints already
      if (is_new && !context_.output_directory.empty()) check_output_space(context_.output_directory, job_);
      for (RunObserver* observer : context_.observers) observer->on_prepare();
      if (is_new && job_.initialize) weights_ = read_initial_weights(*job_.initialize, *job_.graph);
      session_ = open_session(job_, context_.data_root, Session::Purpose::kTraining, context_.device_options);
      if (weights_) load_initial_weights(*weights_, session_->scheduler());
      set_learners(job_.learners_per_device);  // the session may have fewer learners than the job
      session_->training_ring().set_observer(context_.training_input);
      session_->test_ring().set_observer(context_.evaluation_input);
      if (session_->validation_ring() != nullptr) session_->validation_ring()->set_observer(context_.evaluation_input);
      if (context_.resumed != nullptr) resume(*context_.resumed);
      make_changes();
      if (job_.checkpoint.are_on()) {
        checkpoints_ = std::make_unique<RunCheckpoints>(job_, context_, *session_, scores_, state_,
                                                        [this] { return seconds_since(start_); });
      }
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
  bool time_is_over() const {
    constexpr double kSecondsPerMinute = 60.0;
    const std::optional<double>& minutes = job_.training.max_minutes;
    return minutes && seconds_since(start_) >= *minutes * kSecondsPerMinute;
  }

  void set_learners(std::vector<int> per_device) {
    state_.learners_per_device = std::move(per_device);
    summary_.learners_per_device = state_.learners_per_device;
    summary_.learners = std::accumulate(state_.learners_per_device.begin(), state_.learners_per_device.end(), 0);
    const std::uint64_t batch = session_ ? session_->scheduler().batches() : 0;
    std::vector<LearnerStep>& steps = state_.learners;
    if (!steps.empty() && steps.back().at_batch == batch) steps.pop_back();
    if (steps.empty() || steps.back().per_device != state_.learners_per_device) {
      steps.push_back({batch, state_.learners_per_device, {}});
    }
  }

  // Sets the session, the state and the clock to those of the checkpoint.
  void resume(SavedRun& saved) {
    jobs::resume(saved, origin_of(job_, *session_, context_.program), job_, *session_, state_);
    scores_.continue_from(state_.scores);
    start_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state_.elapsed_seconds));
    summary_.epochs = state_.epochs;
    if (target_of(saved.job_text) != job_.training.target_accuracy) state_.time_to_accuracy_seconds.reset();
    summary_.time_to_accuracy_seconds = state_.time_to_accuracy_seconds;
    if (state_.switches_done > 0) synchronization_ = sma::name_of(job_.switches[state_.switches_done - 1].to.scheme);
    resumed_ = ResumeRow{.batch = saved.training.batches,
                         .epoch = session_->scheduler().progress(),
                         .elapsed_seconds = state_.elapsed_seconds,
                         .path = context_.resumed_path,
                         .from = saved.run.learners_per_device,
                         .to = state_.learners_per_device};
    set_learners(state_.learners_per_device);
    saved.training = {};
    saved.model = {};
  }

  void make_changes() {
    if (context_.resumed == nullptr) {
      changes_ = make_learner_changes(job_, *session_, context_.learner_cache);
    } else {
      changes_ = continue_learner_changes(job_, *session_, state_);
    }
  }

  void announce() {
    RunStart start = describe_run(job_, *session_, scores_.accuracy_set());
    start.learners_per_device = state_.learners_per_device;
    start.elapsed_seconds = seconds_since(start_);
    start.data_root = absolute(context_.data_root);
    start.output_directory = context_.output_directory;
    start.resumed = resumed_;
    if (weights_) start.weights = weights_->text();
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
      training_start_ = context_.now();
      for (int epoch = state_.epochs + 1; epoch <= job_.training.max_epochs; ++epoch) {
        // An earlier process of the run may have come here.
        if (scores_.target_is_reached()) {
          summary_.status = RunStatus::kTargetReached;
          return;
        }
        if (scores_.patience_is_over()) {
          summary_.message = fmt::format("ended early: {} without an improvement (training.patience_epochs)",
                                         counted(*job_.training.patience_epochs, "epoch"));
          break;
        }
        const bool is_whole = train_epoch(epoch);
        if (!is_whole && !stop_requested()) {
          summary_.message = fmt::format("ended after {} (training.max_minutes)", epochs_text(epochs(examples())));
          return;
        }
        if (!is_whole) {
          summary_.status = RunStatus::kStopped;
          summary_.message = fmt::format("stopped by {} after {}", signal_name(*context_.stop_signal),
                                         epochs_text(epochs(examples())));
          return;
        }
        const bool reached = evaluate_epoch(epoch);
        const bool is_last = reached || epoch == job_.training.max_epochs || scores_.patience_is_over();
        if (checkpoints_) checkpoints_->save_after_epoch(is_last);
        if (reached) {
          summary_.status = RunStatus::kTargetReached;
          return;
        }
      }
      summary_.unused_switches = state_.unused_switches + static_cast<int>(job_.switches.size() - state_.switches_done);
    } catch (const engine::Error& error) {
      if (error.kind() != engine::ErrorKind::kDiverged) throw;
      summary_.status = RunStatus::kDiverged;
      summary_.message = error.what();
    }
  }

  // Returns false if a signal or training.max_minutes ended the epoch early. An epoch ends at the first round boundary
  // at or after its last mini-batch.
  bool train_epoch(int epoch) {
    scheduler::Scheduler& scheduler = session_->scheduler();
    const auto end =
        static_cast<std::uint64_t>(epoch) * static_cast<std::uint64_t>(session_->training_order().batches_per_epoch());
    epoch_start_ = context_.now() -
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state_.epoch_seconds));
    scores_.forget();
    try {
      round_start_ = context_.now();
      while (scheduler.batches() < end && !stop_requested() && !time_is_over()) {
        switch_synchronization();
        change_learners();
        epoch_learning_rate_ = static_cast<double>(scheduler.learning_rate());
        account(scheduler.advance(session_->training_ring(), 1));
        report_progress();
        if (scheduler.batches() < end) save_if_due();
      }
      const bool is_stopped = scheduler.batches() < end;
      if (is_stopped && stop_requested()) {
        for (RunObserver* observer : context_.observers) observer->on_stop(*context_.stop_signal);
      }
      account(scheduler.drain());
      state_.epoch_seconds = seconds_since(epoch_start_);
      if (is_stopped && checkpoints_) checkpoints_->save_between_rounds();
    } catch (const engine::Error&) {
      state_.epoch_seconds = seconds_since(epoch_start_);
      throw;
    }
    if (state_.epoch.examples == 0 && state_.epoch.tasks > 0) {
      engine::fail(engine::ErrorKind::kData,
                   "no example of the training data can be read; `arbalest data verify` names them with their reasons");
    }
    return scheduler.batches() >= end;
  }

  // The time of a save is no training time for the tuner.
  void save_if_due() {
    if (!checkpoints_) return;
    checkpoints_->report(/*wait=*/false);
    if (!checkpoints_->is_due()) return;
    account(session_->scheduler().drain());
    state_.epoch_seconds = seconds_since(epoch_start_);
    checkpoints_->save_between_rounds();
    round_start_ = context_.now();
  }

  // Adds the results of the tasks that have ended since the last call.
  void account(const scheduler::Progress& progress) {
    state_.epoch.add(progress);
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
    state_.learner_steps_done = changes_->steps_done();
    const ResizeRow row{.batch = batch,
                        .epoch = scheduler.progress(),
                        .elapsed_seconds = seconds_since(start_),
                        .from = summary_.learners_per_device,
                        .to = change->to,
                        .reason = change->reason,
                        .evidence = change->evidence};
    if (row.to != row.from) {
      state_.epoch.add(scheduler.drain());
      session_->resize(row.to);
      set_learners(row.to);
      round_start_ = context_.now();
    }
    for (RunObserver* observer : context_.observers) observer->on_resize(row);
  }

  // Carries out the switches that are due before the next stride.
  void switch_synchronization() {
    scheduler::Scheduler& scheduler = session_->scheduler();
    std::size_t& done = state_.switches_done;
    const std::size_t first = done;
    for (; done < job_.switches.size() && scheduler.progress() >= job_.switches[done].at_epoch; ++done) {
      if (done != first) ++state_.unused_switches;  // the one before it
      const SynchronizationSwitch& to = job_.switches[done];
      SwitchRow row{.batch = scheduler.batches(),
                    .epoch = scheduler.progress(),
                    .elapsed_seconds = seconds_since(start_),
                    .from = synchronization_,
                    .to = std::string(sma::name_of(to.to.scheme)),
                    .learners_per_device = {}};
      state_.epoch.add(scheduler.drain());
      if (changes_) changes_->settle();
      session_->switch_to(to);
      synchronization_ = row.to;
      if (!to.learners_per_device.empty()) set_learners(to.learners_per_device);
      row.learners_per_device = summary_.learners_per_device;
      round_start_ = context_.now();
      for (RunObserver* observer : context_.observers) observer->on_switch(row);
    }
  }

  // Examples trained on so far.
  std::int64_t examples() const { return state_.examples + state_.epoch.examples; }

  double epochs(std::int64_t examples) const {
    const dataflow::ShuffledOrder& order = session_->training_order();
    return static_cast<double>(examples) / static_cast<double>(order.batches_per_epoch() * order.batch_size());
  }

  void report_progress() {
    constexpr double kInterval = 0.25;  // seconds
    const double elapsed = seconds_since(start_);
    if (state_.epoch.examples == 0 || elapsed < next_report_) return;
    next_report_ = elapsed + kInterval;
    const double done = epochs(examples());
    const double before = resumed_ ? resumed_->epoch : 0.0;  // trained by earlier processes of the run
    if (done <= before) return;
    const double left = std::max(0.0, static_cast<double>(job_.training.max_epochs) - done);
    const RunProgress progress{
        .epoch = done,
        .max_epochs = job_.training.max_epochs,
        .train_loss = mean_of(state_.epoch.loss_sum, state_.epoch.examples),
        .images_per_second = static_cast<double>(state_.epoch.examples) / seconds_since(epoch_start_),
        .elapsed_seconds = elapsed,
        .remaining_seconds = seconds_since(training_start_) / (done - before) * left};
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
    state_.time_to_accuracy_seconds = summary_.time_to_accuracy_seconds;
    summary_.epochs = epoch;
    EpochRow row{.epoch = epoch,
                 .train_loss = mean_of(state_.epoch.loss_sum, state_.epoch.examples),
                 .images_per_second = static_cast<double>(state_.epoch.examples) / state_.epoch_seconds,
                 .elapsed_seconds = elapsed,
                 .learning_rate = epoch_learning_rate_,
                 .learners_per_device = summary_.learners_per_device,
                 .replica_distance = state_.epoch.replica_distance,
                 .replica_spread = state_.epoch.replica_spread,
                 .training_seconds = state_.epoch_seconds,
                 .evaluation_seconds = evaluation_seconds,
                 .host_microseconds_per_step = mean_of(1e6 * state_.epoch.host_seconds, state_.epoch.tasks)};
    if (summary_.metric == Metric::kAccuracy) row.train_accuracy = mean_of(state_.epoch.correct, state_.epoch.examples);
    scores_.write_to(row);
    if (job_.reports_loss_gap) row.averaging_loss_gap = scores_.loss_gap(*session_);
    for (RunObserver* observer : context_.observers) observer->on_epoch(row);
    scores_.require_finite(fmt::format("after epoch {}", epoch));
    end_epoch(epoch);
    return reached;
  }

  // Adds the epoch under way to the totals.
  void end_epoch(int epoch) {
    state_.epochs = epoch;
    state_.examples += std::exchange(state_.epoch, {}).examples;
    state_.training_seconds += std::exchange(state_.epoch_seconds, 0.0);
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
    if (checkpoints_) checkpoints_->report(/*wait=*/true);
    scores_.evaluate_at_end(*session_);
    const std::string problem = scores_.problem();
    if (summary_.status != RunStatus::kDiverged && !problem.empty()) {
      summary_.status = RunStatus::kDiverged;
      summary_.message += fmt::format("{}training had diverged: {}", summary_.message.empty() ? "" : "; ", problem);
    }
  }

  // Calls all observers even if one fails; then throws the first error.
  void finish() {
    scores_.write_to(summary_);
    if (session_) {
      summary_.skipped_examples = state_.skipped_examples + session_->skipped_examples();
      summary_.first_skipped = state_.first_skipped.empty() ? session_->first_skipped() : state_.first_skipped;
      summary_.examples = examples();
      summary_.epochs_begun = epochs(examples());
    }
    summary_.train_seconds = seconds_since(start_);
    const double training_seconds = state_.training_seconds + state_.epoch_seconds;
    summary_.images_per_second =
        training_seconds > 0.0 ? static_cast<double>(summary_.examples) / training_seconds : 0.0;
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

  JobOptions job_;  // stays as it is once the session is open
  const RunContext& context_;
  Clock::time_point start_ = context_.now();  // less the seconds of earlier processes of the run
  RunState state_;
  std::optional<ResumeRow> resumed_;
  std::optional<InitialWeights> weights_;  // saved weights that the run starts from
  std::unique_ptr<Session> session_;
  std::unique_ptr<LearnerChanges> changes_;  // declared after session_, which it uses
  ModelScores scores_;
  RunSummary summary_;
  std::unique_ptr<RunCheckpoints> checkpoints_;  // declared after what it refers to; null: there are none
  Clock::time_point epoch_start_;                // less the seconds of earlier processes of the run
  Clock::time_point round_start_;
  double epoch_learning_rate_ = 0.0;  // in its last round
  Clock::time_point training_start_;
  double next_report_ = 0.0;
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
  scores.evaluate_at_end(*session);
  scores.require_finite("after one round");
  const std::string text =
      fmt::format("{}: one round of {} trained (loss {}), {}", job.name, counted(progress.tasks, "mini-batch"),
                  loss_text(mean_of(progress.loss_sum, progress.examples)), scores.text());
  return {text, fitting.warnings};
}

}  // namespace arbalest::jobs
