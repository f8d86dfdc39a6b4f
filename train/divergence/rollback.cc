#include "train/divergence/rollback.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/job/job_changes.h"
#include "checkpoint/transfer/run_transfer.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "scheduler/replicas/diverged.h"
#include "scheduler/replicas/loss_watch.h"
#include "train/divergence/rollback_point.h"
#include "train/live/resumption.h"

namespace arbalest::jobs {

namespace {

// The loss that shows the divergence; none if something else does.
std::optional<double> loss_of(const engine::Error& error) {
  const auto* diverged = dynamic_cast<const scheduler::Diverged*>(&error);
  return diverged == nullptr ? std::nullopt : std::optional(diverged->loss());
}

// A spike is known some windows after the loss began to rise.
RollbackLimits limits_of(const LiveRun& run, const engine::Error& error) {
  RollbackLimits limits{.last = run.state.rollbacks.to_batch};
  const std::optional<double> loss = loss_of(error);
  if (!loss || !std::isfinite(*loss)) return limits;
  const std::int64_t window = scheduler::SpikeRule{}.batches_of_window(run.job.training.batch_size);
  const auto rise = static_cast<std::uint64_t>(window * (scheduler::LossWatch::kHighWindows + 1));
  const std::uint64_t batches = run.session->scheduler().batches();
  limits.before = batches > rise ? batches - rise : 0;
  return limits;
}

// Finds the point; sets `problem` if there is none.
std::optional<RollbackPoint> find_point(const LiveRun& run, const engine::Error& error, std::string& problem) {
  const auto warn = [&](const std::string& text) { run.notify(&RunObserver::on_warning, text); };
  try {
    const std::filesystem::path checkpoints = checkpoints_of(run.context.output_directory);
    const bool has_any = !list_checkpoints(checkpoints).empty();
    std::optional<RollbackPoint> point = find_rollback_point(checkpoints, limits_of(run, error), warn);
    if (!point) {
      problem = has_any ? "no checkpoint of finite numbers is left to go back to"
                        : "the run cannot go back, because not even the checkpoint of its start could be saved: a "
                          "warning above says why";
    }
    return point;
  } catch (const std::exception& cause) {
    problem = fmt::format("the run cannot go back: {}", as_error(cause).what());
    return std::nullopt;
  }
}

void end(LiveRun& run, const engine::Error& error, const std::string& problem) {
  run.summary.status = RunStatus::kDiverged;
  run.summary.message = error.what();
  if (!problem.empty()) run.summary.message += "; " + problem;
}

// Sets session and state to those of the checkpoint, but for what the run has gained or lost since then.
void restore(LiveRun& run, SavedRun& saved) {
  RunState& state = run.state;
  const RunState before = state;
  const ScoreHistory scores = run.scores.history();
  take_learners(saved, run.own_part(saved.run.learners_per_device), run.summary.devices, run.job);
  resume(saved, run.own_part(saved.run.learners_per_device), run.origin(), run.job, *run.session, run.world, state);
  const ScoreOrder order = run.scores.order();
  state.scores.best_test = order.better(scores.best_test, state.scores.best_test);
  state.scores.best_validation = order.better(scores.best_validation, state.scores.best_validation);
  state.skipped_examples = before.skipped_examples;  // the rings count on
  state.first_skipped = before.first_skipped;
  state.rollbacks = {before.rollbacks.count + 1, before.rollbacks.factor * run.job.training.divergence.rollback_factor,
                     saved.training.batches, saved.training.batches};
  if (target_of(saved.job_text) != run.job.training.target_accuracy) state.time_to_accuracy_seconds.reset();
  run.scores.forget();
  run.scores.continue_from(state.scores);
  run.summary.epochs = state.epochs;
  run.summary.time_to_accuracy_seconds = state.time_to_accuracy_seconds;
  run.set_learners(state.learners_per_device);
  run.apply_rate_factor();
}

}  // namespace

bool roll_back(LiveRun& run, RoundChanges& changes, RunCheckpoints* checkpoints, const engine::Error& error) {
  std::string problem;
  const int done = run.state.rollbacks.count;
  if (!run.job.training.divergence.rolls_back || checkpoints == nullptr) {
    end(run, error, "");
    return false;
  }
  if (done >= kMostRollbacks) {
    end(run, error,
        fmt::format("the run has gone back {}, to {:g} times the learning rate (training.on_divergence), and does not "
                    "go back again; begin anew in another directory (--output) with such a change",
                    counted(done, "time"), run.state.rollbacks.factor));
    return false;
  }
  const scheduler::Scheduler& scheduler = run.session->scheduler();
  RollbackRow row{.batch = scheduler.batches(),
                  .epoch = scheduler.progress(),
                  .elapsed_seconds = run.seconds(),
                  .loss = loss_of(error),
                  .reason = error.what(),
                  .most_rollbacks = kMostRollbacks};
  checkpoints->report(/*wait=*/true);
  std::optional<RollbackPoint> point;
  if (run.leads()) point = find_point(run, error, problem);
  if (run.world.any_of(point ? 1 : 0) == 0) {
    end(run, error, problem);
    return false;
  }
  if (!point) point.emplace();
  broadcast_run(run.world, point->saved);
  changes.stop();
  restore(run, point->saved);
  changes.go_on();
  row.checkpoint = point->path.string();
  row.to_batch = scheduler.batches();
  row.to_epoch = scheduler.progress();
  row.rollbacks = run.state.rollbacks.count;
  row.factor = run.state.rollbacks.factor;
  row.learners_per_device = run.summary.learners_per_device;
  run.notify(&RunObserver::on_rollback, row);
  checkpoints->write_again(std::move(point->saved));
  return true;
}

}  // namespace arbalest::jobs
