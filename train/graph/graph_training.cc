#include "train/graph/graph_trainer.h"

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "train/divergence/rollback.h"
#include "train/live/closing.h"
#include "train/live/early_end.h"
#include "train/live/live_run.h"
#include "train/live/opening.h"
#include "train/live/output_space.h"
#include "train/live/plateau.h"
#include "train/live/round_changes.h"
#include "train/live/run_checkpoints.h"
#include "train/live/run_rows.h"
#include "train/live/skip_watch.h"
#include "train/processes/agreement.h"
#include "train/processes/shared_data.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::Phase;

namespace {

class GraphRun {
 public:
  GraphRun(const JobOptions& job, const RunContext& context) : run_(job, context), context_(context) {}

  RunSummary run() {
    try {
      const bool is_new = context_.resumed == nullptr;  // a resumed run has its checkpoints already
      open(is_new);
      announce_run(run_);
      take_over_best(run_, checkpoints_.get());
      // Save before step 1 if the run may roll back. A run that is resumed in another directory saves its first
      // checkpoint there.
      const bool saves_now = !is_new || run_.job.training.divergence.rolls_back;
      if (checkpoints_ && saves_now) checkpoints_->save_between_rounds();
      train();
      save_and_evaluate(run_, checkpoints_.get(), skips_);
    } catch (const std::exception& error) {
      // The others must not wait for this process. All of them know a SharedError.
      if (dynamic_cast<const SharedError*>(&error) == nullptr) run_.world.announce_failure(as_error(error));
      fail_run(run_, error);
      throw;
    }
    run_.enter(Phase::kEnd);
    finish_run(run_);
    if (checkpoints_ && run_.summary.status == RunStatus::kStopped) {
      together(run_.world, [&] { checkpoints_->require_saved(); });
    }
    return run_.summary;
  }

 private:
  scheduler::Scheduler& scheduler() { return run_.session->scheduler(); }

  void open(bool is_new) {
    if (is_new) together(run_.world, [&] { require_stable_steps(run_.job); });
    if (is_new && !context_.output_directory.empty()) {
      together(run_.world, [&] {
        if (run_.leads()) check_output_space(context_.output_directory, run_.job);
      });
    }
    run_.enter(Phase::kLoading);
    run_.notify(&RunObserver::on_prepare);
    open_run(run_);
    training_reads_.emplace(run_.world, run_.session->training_data());
    evaluation_reads_.emplace(run_.world, run_.session->evaluation_data());
    if (is_new) {
      changes_.begin();
    } else {
      resume_run(run_, *context_.resumed);
      changes_.go_on();
    }
    if (!run_.job.checkpoint.are_on()) return;
    checkpoints_ = std::make_unique<RunCheckpoints>(run_);
  }

  // Returns what this process asks for between two iterations.
  Requests requests() {
    Requests own = end_requests(run_, run_.seconds_since(epoch_start_));
    own.save = checkpoints_ && checkpoints_->is_due();
    own.has_diverged = scheduler().has_divergence();
    own.counts_skips = skips_.asks_to_count();
    changes_.add_to(own);
    own.is_writing = checkpoints_ && checkpoints_->is_writing_elsewhere();
    return own;
  }

  // Trains until the target, the last epoch, a stop signal or divergence; sets the status.
  void train() {
    run_.summary.status = RunStatus::kCompleted;
    training_start_ = context_.now();
    for (bool goes_on = true; goes_on;) {
      try {
        train_epochs();
        return;
      } catch (const engine::Error& error) {
        if (error.kind() != engine::ErrorKind::kDiverged) throw;
        goes_on = roll_back(run_, changes_, checkpoints_.get(), error);
      }
    }
  }

  void train_epochs() {
    const int last = run_.job.training.max_epochs;
    for (int epoch = run_.state.epochs + 1; epoch <= last; ++epoch) {
      if (ends_before_epoch(run_)) {
        if (run_.summary.status == RunStatus::kTargetReached) return;
        break;
      }
      if (!train_epoch(epoch)) return end_within_epoch(run_);
      const bool reached = evaluate_epoch(epoch);
      if (checkpoints_) checkpoints_->save_after_epoch(is_last_epoch(run_, epoch, reached));
      if (reached) {
        run_.summary.status = RunStatus::kTargetReached;
        return;
      }
    }
    ends_before_epoch(run_);  // a resumed run may have no epoch left
    end_beyond_last_epoch(run_);
    run_.summary.unused_switches =
        run_.state.unused_switches + static_cast<int>(run_.job.switches.size() - run_.state.switches_done);
  }

  // Returns false if a signal or training.max_minutes ended the epoch early. An epoch ends at the first round boundary
  // at or after its last mini-batch.
  bool train_epoch(int epoch) {
    const std::int64_t batches = run_.session->training_order().batches_per_epoch();
    const auto end = static_cast<std::uint64_t>(epoch) * static_cast<std::uint64_t>(batches);
    RunState& state = run_.state;
    epoch_start_ = run_.seconds_ago(state.epoch_seconds);
    run_.scores.forget();
    skips_.begin_epoch();
    try {
      train_rounds(end);
      const bool is_stopped = scheduler().batches() < end;
      if (is_stopped && run_.decided.stop_signal != 0) run_.notify(&RunObserver::on_stop, run_.decided.stop_signal);
      changes_.drain();
      state.epoch_seconds = run_.seconds_since(epoch_start_);
      skips_.check_epoch();
      if (is_stopped && checkpoints_) checkpoints_->save_between_rounds();
    } catch (const engine::Error&) {
      state.epoch_seconds = run_.seconds_since(epoch_start_);
      throw;
    }
    together(run_.world, [&] {
      if (state.epoch.examples > 0 || state.epoch.tasks == 0) return;
      engine::fail(engine::ErrorKind::kData,
                   "no example of the training data can be read; `arbalest data verify` lists the damaged examples and "
                   "the reasons");
    });
    return scheduler().batches() >= end;
  }

  void train_rounds(std::uint64_t end) {
    changes_.skip_time();
    run_.decided = agreement_.now(requests());
    end_written_save();
    while (scheduler().batches() < end && !run_.decided.end_rounds()) {
      changes_.carry_out();
      epoch_learning_rate_ = static_cast<double>(scheduler().learning_rate());
      changes_.account(scheduler().advance(run_.session->training_ring(), 1));
      run_.enter(Phase::kTraining);
      report_progress();
      if (!checkpoints_) refuse_save_requests(context_, refused_requests_);
      run_.decided = agreement_.after_iteration(requests(), scheduler().iterations_apart());
      end_written_save();
      count_skips_if_asked();
      if (scheduler().batches() < end) save_if_due();
    }
  }

  // Ends a save whose parts have all been written, and tells of it.
  void end_written_save() {
    if (!checkpoints_) return;
    if (run_.decided.all_have_written) checkpoints_->collect_parts();
    checkpoints_->report(/*wait=*/false);
  }

  void count_skips_if_asked() {
    if (!run_.decided.counts_skips) return;
    changes_.drain();
    agreement_.forget();
    skips_.check_epoch();
  }

  // The time of a save is no training time for the tuner.
  void save_if_due() {
    if (!checkpoints_ || !run_.decided.save) return;
    changes_.drain();
    run_.state.epoch_seconds = run_.seconds_since(epoch_start_);
    checkpoints_->save_between_rounds();
    agreement_.forget();
    changes_.skip_time();
  }

  void report_progress() {
    constexpr double kInterval = 0.25;  // seconds
    const double elapsed = run_.seconds();
    if (run_.state.epoch.examples == 0 || elapsed < next_report_) return;
    next_report_ = elapsed + kInterval;
    const double before = run_.resumed ? run_.resumed->epoch : 0.0;  // trained by earlier processes of the run
    if (run_.epochs(run_.examples()) <= before) return;
    run_.notify(&RunObserver::on_progress, progress_row(run_, elapsed, epoch_start_, training_start_));
  }

  // Returns whether the target is reached.
  bool evaluate_epoch(int epoch) {
    run_.enter(Phase::kEvaluation);
    const LiveRun::Clock::time_point evaluation_start = context_.now();
    skips_.begin_evaluation();
    run_.scores.evaluate(*run_.session);
    skips_.check_evaluation();
    training_reads_->compare();
    evaluation_reads_->compare();
    const double evaluation_seconds = run_.seconds_since(evaluation_start);
    const double elapsed = run_.seconds();
    const bool reached = run_.scores.count_epoch();
    RunSummary& summary = run_.summary;
    if (reached) summary.time_to_accuracy_seconds = elapsed;
    run_.state.recent_seconds = elapsed;
    run_.state.time_to_accuracy_seconds = summary.time_to_accuracy_seconds;
    summary.epochs = epoch;
    run_.notify(&RunObserver::on_epoch, epoch_row(run_, epoch, epoch_learning_rate_, elapsed, evaluation_seconds));
    run_.scores.require_finite(fmt::format("after epoch {}", epoch), scheduler());
    follow_plateau(run_, epoch, is_last_epoch(run_, epoch, reached));
    end_epoch(epoch);
    return reached;
  }

  // Adds the epoch under way to the totals.
  void end_epoch(int epoch) {
    RunState& state = run_.state;
    state.epochs = epoch;
    const scheduler::Progress ended = std::exchange(state.epoch, {});
    state.epoch_loss = mean_of(ended.sums.loss(), ended.examples);
    state.examples += ended.examples;
    sma::add(state.staleness, ended.staleness);
    state.training_seconds += std::exchange(state.epoch_seconds, 0.0);
  }

  LiveRun run_;
  const RunContext& context_;
  Agreement agreement_{run_.world};
  RoundChanges changes_{run_};
  SkipWatch skips_{run_};
  std::optional<SharedReads> training_reads_;    // from open() on
  std::optional<SharedReads> evaluation_reads_;  // from open() on
  std::unique_ptr<RunCheckpoints> checkpoints_;  // null: there are none
  LiveRun::Clock::time_point epoch_start_;       // less the seconds of earlier processes of the run
  LiveRun::Clock::time_point training_start_;
  double epoch_learning_rate_ = 0.0;  // in its last round
  double next_report_ = 0.0;
  int refused_requests_ = 0;  // of RunContext::save_requests, if there are no checkpoints
};

}  // namespace

RunSummary train_graph(const JobOptions& job, const RunContext& context) { return GraphRun(job, context).run(); }

}  // namespace arbalest::jobs
