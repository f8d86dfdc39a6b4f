#include "train/live/early_end.h"

#include <optional>
#include <string>

#include "checkpoint/run_end.h"
#include "messages/text.h"

namespace arbalest::jobs {

namespace {

std::string stopper(int signal) { return signal == kStopOfCaller ? "its caller" : signal_name(signal); }

}  // namespace

Requests end_requests(const LiveRun& run, double epoch_seconds) {
  Requests requests;
  if (run.context.stop_signal != nullptr) requests.stop_signal = *run.context.stop_signal;
  requests.time_is_over = run.leads() && minutes_are_over(run.job.training, run.state.training_seconds + epoch_seconds);
  return requests;
}

bool is_last_epoch(const LiveRun& run, int epoch, bool reached) {
  return reached || epoch == run.job.training.max_epochs || run.scores.patience_is_over();
}

bool ends_before_epoch(LiveRun& run) {
  if (run.scores.target_is_reached()) {
    run.summary.status = RunStatus::kTargetReached;
    std::optional<double>& time = run.state.time_to_accuracy_seconds;
    // An earlier process of the run has reached the target without knowing it, at its last evaluation or before.
    if (!time) time = run.state.recent_seconds.value_or(run.seconds());
    run.summary.time_to_accuracy_seconds = time;
    return true;
  }
  if (!run.scores.patience_is_over()) return false;
  run.summary.message = fmt::format("ended early: {}", patience_text(run.job.training));
  return true;
}

void end_beyond_last_epoch(LiveRun& run) {
  const int last = run.job.training.max_epochs;
  const bool is_beyond = run.state.epochs > last || (run.state.epochs == last && run.state.epoch.tasks > 0);
  if (!run.resumed || !is_beyond || !run.summary.message.empty()) return;
  run.summary.message = fmt::format(
      "the checkpoint '{}' is at {}, beyond training.max_epochs: {}, so nothing was trained, and the model is the "
      "checkpoint's; train on by --resume with a larger training.max_epochs",
      run.resumed->path, epochs_text(run.resumed->epoch), last);
}

void end_within_epoch(LiveRun& run) {
  const std::string after = epochs_text(run.epochs(run.examples()));
  if (run.decided.stop_signal == 0) {
    run.summary.message = fmt::format("ended after {} (training.max_minutes)", after);
    return;
  }
  run.summary.status = RunStatus::kStopped;
  run.summary.stop_signal = run.decided.stop_signal;
  run.summary.message = fmt::format("stopped by {} after {}", stopper(run.decided.stop_signal), after);
}

}  // namespace arbalest::jobs
