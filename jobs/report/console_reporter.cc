#include "jobs/report/console_reporter.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jobs/messages/progress_bar.h"
#include "jobs/messages/text.h"
#include "jobs/report/run_directory.h"
#include "jobs/report/run_event_text.h"

namespace arbalest::jobs {

namespace {

constexpr double kLineIntervalSeconds = 10.0;  // if there is no bar

std::string rate(const RunStart& start, double images_per_second) {
  const char* unit = !start.scheme.empty() ? "rows" : start.metric == Metric::kRmse ? "ratings" : "images";
  return fmt::format("{} {}/s", grouped(std::llround(images_per_second)), unit);
}

// The score as text, "98.12 %" or "0.8412".
std::string score_text(Metric metric, double score) {
  return metric == Metric::kRmse ? loss_text(score) : percent(score);
}
std::string metric_text(Metric metric, EvaluationSet set) {
  return fmt::format("{} {}", to_string(set), metric == Metric::kRmse ? "RMSE" : "accuracy");
}

const std::optional<double>& test_score_of(const RunSummary& summary) {
  return summary.metric == Metric::kRmse ? summary.test_rmse : summary.test_accuracy;
}

// The score on the set by which the run is judged: the validation set if there is one.
const std::optional<double>& score_of(const RunSummary& summary) {
  if (summary.accuracy_set == EvaluationSet::kTest) return test_score_of(summary);
  return summary.metric == Metric::kRmse ? summary.validation_rmse : summary.validation_accuracy;
}
const std::optional<double>& best_of(const RunSummary& summary) {
  const bool is_rmse = summary.metric == Metric::kRmse;
  if (summary.accuracy_set == EvaluationSet::kTest)
    return is_rmse ? summary.best_test_rmse : summary.best_test_accuracy;
  return is_rmse ? summary.best_validation_rmse : summary.best_validation_accuracy;
}

std::string work_text(const RunStart& start) {
  if (!start.scheme.empty()) return start.scheme;
  return fmt::format("mini-batches of {} each, {}", start.batch_size, to_string(start.precision));
}

std::string start_text(const RunStart& start) {
  std::string stop = "after " + counted(start.max_epochs, "epoch");
  if (start.target_accuracy) {
    stop = fmt::format("at {} {} accuracy (lower median of the last 5 evaluations), or {}",
                       percent(*start.target_accuracy), to_string(start.accuracy_set), stop);
  }
  std::string data = start.data;
  if (start.dropped_examples > 0) {
    data += fmt::format(" (every epoch drops its last {}: no whole mini-batch)",
                        counted(start.dropped_examples, "example"));
  }
  std::vector<std::vector<std::string>> rows = {
      {"job", start.job},
      {"model", start.model},
      {"data", data},
      {"devices", fmt::format("{}", fmt::join(start.devices, " "))},
      {"learners",
       fmt::format("{}{}; {}", learners_text(start.devices, start.learners_per_device),
                   start.learners_change.empty() ? "" : fmt::format(" ({})", start.learners_change), work_text(start))},
      {"stop", stop}};
  if (!start.weights.empty()) rows.insert(rows.begin() + 2, {"weights", start.weights});
  if (start.resumed) {
    rows.push_back({"resumes", fmt::format("{} at epoch {:.2f}, after {}", start.resumed->path, start.resumed->epoch,
                                           duration(start.resumed->elapsed_seconds))});
  }
  if (!start.output_directory.empty()) rows.push_back({"output", start.output_directory});
  return table(rows, 2);
}

// " (top-5 80.00 %)" if there are so many classes that it is informative; else "".
std::string top5_text(const RunStart& start, const std::optional<double>& top5_accuracy) {
  constexpr std::int64_t kManyClasses = 100;
  if (start.classes < kManyClasses || !top5_accuracy) return "";
  return fmt::format(" (top-5 {})", percent(*top5_accuracy));
}

// "  test loss 0.2345  test accuracy 98.12 %", or of the validation set if there is one.
std::string evaluation_text(const RunStart& start, const EpochRow& row) {
  const bool validates = row.validation_loss.has_value();
  const EvaluationSet set = validates ? EvaluationSet::kValidation : EvaluationSet::kTest;
  const std::optional<double>& rmse = validates ? row.validation_rmse : row.test_rmse;
  return fmt::format("  {} loss {}  {} {}{}", to_string(set), loss_text(row.decisive_loss()),
                     metric_text(start.metric, set), score_text(start.metric, rmse.value_or(row.decisive_accuracy())),
                     top5_text(start, validates ? row.validation_top5_accuracy : row.test_top5_accuracy));
}

// "objective 0.3456, 1,234 weights are not 0"
std::string sparse_text(const SparseProgress& sparse) {
  std::string text = fmt::format("objective {:.6f}, {} not 0", sparse.objective,
                                 sparse.non_zeros == 1 ? "1 weight is" : grouped(sparse.non_zeros) + " weights are");
  if (sparse.kkt_violation) text += fmt::format(", largest KKT violation {:.2g}", *sparse.kkt_violation);
  return text;
}

// "98.12 % after 4 epochs (best 98.30 %)"; the summary must have a score.
std::string result_text(const RunSummary& summary) {
  const bool whole = summary.status == RunStatus::kCompleted || summary.status == RunStatus::kTargetReached;
  std::string text = fmt::format("{} after {}", score_text(summary.metric, *score_of(summary)),
                                 whole ? counted(summary.epochs, "epoch") : epochs_text(summary.epochs_begun));
  if (best_of(summary)) text += fmt::format(" (best {})", score_text(summary.metric, *best_of(summary)));
  return text;
}

// Describes the scores that a failed run has reached; "" if there are none.
std::string reached_text(const RunSummary& summary) {
  const std::string metric = metric_text(summary.metric, summary.accuracy_set);
  if (score_of(summary)) return fmt::format("{} {}", metric, result_text(summary));
  if (!best_of(summary)) return "";
  return fmt::format("best {} {} in {}", metric, score_text(summary.metric, *best_of(summary)),
                     counted(summary.epochs, "epoch"));
}

std::string stop_text(int signal) {
  constexpr const char* kStopping = "stopping and saving";
  switch (signal) {
    case SIGINT:
      return fmt::format("{}; Ctrl-C again exits without saving", kStopping);
    case SIGTERM:
      return fmt::format("{}; a second SIGTERM exits without saving", kStopping);
    default:
      return kStopping;
  }
}

// The job must have a target.
std::string time_to_accuracy_text(const RunStart& start, const RunSummary& summary) {
  const std::string target =
      fmt::format("{} {} accuracy", percent(*start.target_accuracy), to_string(start.accuracy_set));
  if (summary.time_to_accuracy_seconds) return fmt::format("{:.1f} s to {}", *summary.time_to_accuracy_seconds, target);
  if (!summary.held_accuracy) return fmt::format("{} not reached in {:.1f} s", target, summary.train_seconds);
  return fmt::format("{} not yet held after {:.1f} s: {}", target, summary.train_seconds,
                     to_string(*summary.held_accuracy));
}

std::string summary_text(const RunStart& start, const RunSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  const bool validates = summary.accuracy_set == EvaluationSet::kValidation;
  if (validates && score_of(summary)) {
    rows.push_back({metric_text(summary.metric, summary.accuracy_set),
                    result_text(summary) + top5_text(start, summary.validation_top5_accuracy)});
  }
  if (test_score_of(summary)) {
    rows.push_back({metric_text(summary.metric, EvaluationSet::kTest),
                    (validates ? score_text(summary.metric, *test_score_of(summary)) : result_text(summary)) +
                        top5_text(start, summary.test_top5_accuracy)});
  }
  if (start.target_accuracy) rows.push_back({"time to accuracy", time_to_accuracy_text(start, summary)});
  if (summary.sparse) rows.push_back({"model found", sparse_text(*summary.sparse)});
  rows.push_back({"throughput", rate(start, summary.images_per_second)});
  rows.push_back({"learners", learners_text(summary.devices, summary.learners_per_device)});
  if (!summary.model_sha256.empty() && !start.output_directory.empty()) {
    rows.push_back({"model", (std::filesystem::path(start.output_directory) / kModelFile).string()});
  }
  return table(rows, 2);
}

}  // namespace

void ConsoleReporter::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), options_.messages);
  std::fflush(options_.messages);
}

void ConsoleReporter::say(std::string_view text) {
  write(fmt::format("{}{}", bar_shown_ ? kClearLine : "", text));
  bar_shown_ = false;
}

void ConsoleReporter::on_prepare() {
  constexpr const char* kPreparing = "preparing data and learners";
  if (options_.quiet) return;
  if (!options_.bar) {
    say(fmt::format("{}\n", kPreparing));
    return;
  }
  write(fmt::format("{}{:.{}}", kClearLine, kPreparing, std::max(options_.columns - 1, 0)));
  bar_shown_ = true;
}

void ConsoleReporter::on_start(const RunStart& start) {
  start_ = start;
  started_ = true;
  if (!options_.quiet) say(start_text(start));
  for (const std::string& warning : start.warnings) on_warning(warning);
}

void ConsoleReporter::show_bar(const RunProgress& progress) {
  const std::string text = fmt::format("epoch {:.1f}/{}  loss {}  {}  {} left", progress.epoch, progress.max_epochs,
                                       loss_text(progress.train_loss), rate(start_, progress.images_per_second),
                                       duration(progress.remaining_seconds));
  const double done = progress.max_epochs > 0 ? progress.epoch / progress.max_epochs : 0.0;
  write(kClearLine + progress_bar(done, text, {options_.columns, options_.color}));
  bar_shown_ = true;
}

void ConsoleReporter::on_progress(const RunProgress& progress) {
  if (options_.quiet) return;
  if (options_.bar) {
    show_bar(progress);
  } else if (progress.elapsed_seconds >= next_line_seconds_) {
    next_line_seconds_ = progress.elapsed_seconds + kLineIntervalSeconds;
    say(fmt::format("epoch {:.1f}/{}  loss {}  {}  {:.1f} s, about {} left\n", progress.epoch, progress.max_epochs,
                    loss_text(progress.train_loss), rate(start_, progress.images_per_second), progress.elapsed_seconds,
                    duration(progress.remaining_seconds)));
  }
}

void ConsoleReporter::on_epoch(const EpochRow& row) {
  if (options_.quiet) return;
  next_line_seconds_ = row.elapsed_seconds + kLineIntervalSeconds;
  const std::string train = row.train_accuracy ? fmt::format("  accuracy {}", percent(*row.train_accuracy)) : "";
  say(fmt::format("epoch {}/{}  train loss {}{}{}  {}  {:.1f} s\n", row.epoch, start_.max_epochs,
                  loss_text(row.train_loss), train, evaluation_text(start_, row), rate(start_, row.images_per_second),
                  row.elapsed_seconds));
  if (row.sparse) say(fmt::format("  {}\n", sparse_text(*row.sparse)));
  const std::string note = options_.epoch_note ? options_.epoch_note() : std::string();
  if (!note.empty()) say(fmt::format("  {}\n", note));
}

void ConsoleReporter::on_resize(const ResizeRow& row) { say_unless_quiet(resize_text(start_.devices, row)); }
void ConsoleReporter::on_switch(const SwitchRow& row) { say_unless_quiet(switch_text(start_.devices, row)); }
void ConsoleReporter::on_rate_drop(const RateDropRow& row) { say_unless_quiet(rate_drop_text(row)); }
void ConsoleReporter::on_checkpoint(const CheckpointRow& row) { say_unless_quiet(checkpoint_text(row)); }

// A roll-back is told even if little else is.
void ConsoleReporter::on_rollback(const RollbackRow& row) {
  on_warning(row.reason);
  say(rollback_text(row));
}

void ConsoleReporter::say_unless_quiet(std::string_view text) {
  if (!options_.quiet) say(text);
}

void ConsoleReporter::on_warning(const std::string& text) {
  const std::string label = options_.color ? "\x1b[33mwarning:\x1b[0m" : "warning:";
  say(fmt::format("arbalest: {} {}\n", label, text));
}

void ConsoleReporter::on_stop(int signal) { say(fmt::format("arbalest: {}\n", stop_text(signal))); }

void ConsoleReporter::on_finish(const RunSummary& summary) {
  if (bar_shown_) say("");
  if (!started_) return;
  if (summary.status == RunStatus::kFailed) {
    // A failed run has no result; whoever catches its error reports it.
    const std::string reached = reached_text(summary);
    if (!reached.empty()) say(fmt::format("arbalest: before it failed: {}\n", reached));
    return;
  }
  if (summary.skipped_examples > 0) {
    say(fmt::format("arbalest: warning: mini-batches went without {} that could not be read; the first: {}\n",
                    counted(summary.skipped_examples, "image"), summary.first_skipped));
  }
  if (summary.unused_switches > 0) {
    say(
        fmt::format("arbalest: warning: {} of the synchronization had no effect: no round began before the next switch "
                    "or the end of the run\n",
                    summary.unused_switches == 1 ? "1 switch" : fmt::format("{} switches", summary.unused_switches)));
  }
  if (!summary.message.empty()) {
    const bool diverged = summary.status == RunStatus::kDiverged;
    say(fmt::format("arbalest: {}{}\n", diverged ? "error: " : "", summary.message));
  }
  const std::string text = summary_text(start_, summary);
  std::fwrite(text.data(), 1, text.size(), options_.results);
  std::fflush(options_.results);
}

}  // namespace arbalest::jobs
