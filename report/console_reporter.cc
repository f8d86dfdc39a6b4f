#include "report/console_reporter.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "messages/progress_bar.h"
#include "messages/text.h"
#include "messages/text_encoding.h"
#include "report/run_directory.h"
#include "report/run_event_text.h"
#include "sma/staleness_summary.h"

namespace arbalest::jobs {

namespace {

constexpr double kLineIntervalSeconds = 10.0;  // if there is no bar

// A classifier's examples are images here, and other examples are ratings.
bool is_classifier(const RunStart& start) {
  return std::ranges::none_of(start.metrics, [](const dataflow::Metric& metric) {
    return metric.is_score && metric.unit == dataflow::MetricUnit::kNumber;
  });
}

std::string rate(const RunStart& start, double images_per_second) {
  const char* unit = !is_classifier(start) ? "ratings" : start.scheme.empty() ? "images" : "rows";
  return fmt::format("{} {}/s", grouped(std::llround(images_per_second)), unit);
}

std::string score_text(const RunStart& start, double score) {
  return value_text(dataflow::score_of(start.metrics), score, start.target_accuracy.value_or(1.0));
}
// "test accuracy"
std::string score_name(const RunStart& start, EvaluationSet set) {
  return fmt::format("{} {}", to_string(set), dataflow::score_of(start.metrics).title);
}

std::optional<double> score_in(const RunStart& start, const Scores& scores) {
  return scores.value(dataflow::score_of(start.metrics).name);
}

// The score on the set by which the run is judged: the validation set if there is one.
std::optional<double> score_of(const RunStart& start, const RunSummary& summary) {
  return score_in(start, summary.accuracy_set == EvaluationSet::kTest ? summary.test : summary.validation);
}
const std::optional<double>& best_of(const RunSummary& summary) {
  return summary.accuracy_set == EvaluationSet::kTest ? summary.best_test : summary.best_validation;
}

std::string work_text(const RunStart& start) {
  if (!start.scheme.empty()) return start.scheme;
  return fmt::format("mini-batches of {} each, {}", start.batch_size, to_string(start.precision));
}

std::string start_text(const RunStart& start) {
  std::string stop = "after " + counted(start.max_epochs, "epoch");
  if (start.target_accuracy) {
    stop = fmt::format("at {} {} accuracy (lower median of the last 5 evaluations), or {}",
                       target_percent(*start.target_accuracy), to_string(start.accuracy_set), stop);
  }
  std::string data = start.data;
  if (start.dropped_examples > 0) {
    data += fmt::format(" (every epoch drops its last {}, too few for a mini-batch)",
                        counted(start.dropped_examples, "example"));
  }
  std::vector<std::vector<std::string>> rows = {
      {"job", start.job},
      {"model", start.model},
      {"data", data},
      {"devices", fmt::format("{}", fmt::join(start.devices, ", "))},
      {"learners",
       fmt::format("{}{}{}; {}", learners_text(start.devices, start.learners_per_device),
                   teams_text(start.largest_team),
                   start.learners_change.empty() ? "" : fmt::format(" ({})", start.learners_change), work_text(start))},
      {"stop", stop}};
  if (!start.precision_choice.empty()) rows.insert(rows.end() - 1, {"precision", start.precision_choice});
  if (!start.learning_rate.empty()) rows.insert(rows.end() - 1, {"learning rate", start.learning_rate});
  if (!start.classes.empty()) rows.insert(rows.begin() + 3, {"classes", start.classes});
  if (!start.weights.empty()) rows.insert(rows.begin() + 2, {"weights", start.weights});
  if (start.resumed) {
    rows.push_back({"resumes", fmt::format("{} at epoch {:.2f}, after {}", start.resumed->path, start.resumed->epoch,
                                           duration(start.resumed->elapsed_seconds))});
  }
  if (!start.output_directory.empty()) rows.push_back({"output", start.output_directory});
  return table(rows, 2);
}

// Metrics beside loss and score, " (top-5 accuracy 80.00 %, top-10 accuracy 91.00 %)"; "" if there are none to show.
std::string others_text(const RunStart& start, const Scores& scores) {
  std::vector<std::string> others;
  for (const dataflow::Metric& metric : start.metrics) {
    const std::optional<double> value = scores.value(metric.name);
    const bool is_main = metric.is_score || metric.name == "loss";
    if (metric.is_brief && !is_main && value) {
      others.push_back(fmt::format("{} {}", metric.title, value_text(metric, *value)));
    }
  }
  return others.empty() ? "" : fmt::format(" ({})", fmt::join(others, ", "));
}

// "  test loss 0.2345  test accuracy 98.12 %", or of the validation set if there is one.
std::string evaluation_text(const RunStart& start, const EpochRow& row) {
  const EvaluationSet set = row.validation.empty() ? EvaluationSet::kTest : EvaluationSet::kValidation;
  const double score = score_in(start, row.decisive()).value_or(std::nan(""));
  return fmt::format("  {} loss {}  {} {}{}", to_string(set), loss_text(row.decisive().loss()), score_name(start, set),
                     score_text(start, score), others_text(start, row.decisive()));
}

// "  accuracy 98.12 %" in training; "" for models that are judged by their loss.
std::string training_text(const RunStart& start, const EpochRow& row) {
  const std::optional<double> score = score_in(start, row.train);
  if (!is_classifier(start) || !score) return "";
  return fmt::format("  {} {}{}", dataflow::score_of(start.metrics).title, score_text(start, *score),
                     others_text(start, row.train));
}

// "mean 2.1, largest 5"
std::string staleness_text(const sma::StalenessCounts& counts) {
  const sma::StalenessSummary summary = sma::summary_of(counts);
  return fmt::format("mean {:.2f}, largest {}", summary.mean, summary.largest);
}

// "objective 0.3456, 1,234 weights are not 0"
std::string sparse_text(const SparseProgress& sparse) {
  std::string text = fmt::format("objective {:.6f}, {} not 0", sparse.objective,
                                 sparse.non_zeros == 1 ? "1 weight is" : grouped(sparse.non_zeros) + " weights are");
  if (sparse.kkt_violation) text += fmt::format(", largest KKT violation {:.2g}", *sparse.kkt_violation);
  return text;
}

// "98.12 % after 4 epochs (best 98.30 %)"; the summary must have a score.
std::string result_text(const RunStart& start, const RunSummary& summary) {
  // A message tells what else has ended the run, perhaps within an epoch.
  const bool is_whole = summary.status == RunStatus::kCompleted && summary.message.empty();
  const bool whole = is_whole || summary.status == RunStatus::kTargetReached;
  std::string text = fmt::format("{} after {}", score_text(start, *score_of(start, summary)),
                                 whole ? counted(summary.epochs, "epoch") : epochs_text(summary.epochs_begun));
  if (best_of(summary)) text += fmt::format(" (best {})", score_text(start, *best_of(summary)));
  return text;
}

// Describes the scores that a failed run has reached; "" if there are none.
std::string reached_text(const RunStart& start, const RunSummary& summary) {
  const std::string name = score_name(start, summary.accuracy_set);
  if (score_of(start, summary)) return fmt::format("{} {}", name, result_text(start, summary));
  if (!best_of(summary)) return "";
  return fmt::format("best {} {} in {}", name, score_text(start, *best_of(summary)), counted(summary.epochs, "epoch"));
}

std::string stop_text(int signal) {
  constexpr const char* kStopping = "stopping and saving";
  switch (signal) {
    case SIGINT: return fmt::format("{}; Ctrl-C again exits without saving", kStopping);
    case SIGTERM: return fmt::format("{}; a second SIGTERM exits without saving", kStopping);
    default: return kStopping;
  }
}

// The job must have a target.
std::string time_to_accuracy_text(const RunStart& start, const RunSummary& summary) {
  const std::string target =
      fmt::format("{} {} accuracy", target_percent(*start.target_accuracy), to_string(start.accuracy_set));
  if (summary.time_to_accuracy_seconds) return fmt::format("{:.1f} s to {}", *summary.time_to_accuracy_seconds, target);
  if (!summary.held_accuracy) return fmt::format("{} not reached in {:.1f} s", target, summary.train_seconds);
  return fmt::format("{} not yet held after {:.1f} s: {}", target, summary.train_seconds,
                     to_string(*summary.held_accuracy, *start.target_accuracy));
}

std::string summary_text(const RunStart& start, const RunSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  const bool validates = summary.accuracy_set == EvaluationSet::kValidation;
  if (validates && score_of(start, summary)) {
    rows.push_back({score_name(start, summary.accuracy_set),
                    result_text(start, summary) + others_text(start, summary.validation)});
  }
  if (const std::optional<double> test = score_in(start, summary.test)) {
    rows.push_back(
        {score_name(start, EvaluationSet::kTest),
         (validates ? score_text(start, *test) : result_text(start, summary)) + others_text(start, summary.test)});
  }
  if (start.target_accuracy) rows.push_back({"time to accuracy", time_to_accuracy_text(start, summary)});
  if (summary.sparse) rows.push_back({"model found", sparse_text(*summary.sparse)});
  if (!summary.staleness.empty()) rows.push_back({"staleness", staleness_text(summary.staleness)});
  rows.push_back({"throughput", rate(start, summary.images_per_second)});
  rows.push_back(
      {"learners", learners_text(summary.devices, summary.learners_per_device) + teams_text(summary.largest_team)});
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

void ConsoleReporter::say(std::string_view text, std::string_view label) {
  write(fmt::format("{}{}{}", bar_shown_ ? kClearLine : "", label, safe_text(text, TextFor::kTerminal)));
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
  say(fmt::format("epoch {}/{}  train loss {}{}{}  {}  {:.1f} s\n", row.epoch, start_.max_epochs,
                  loss_text(row.train.loss()), training_text(start_, row), evaluation_text(start_, row),
                  rate(start_, row.images_per_second), row.elapsed_seconds));
  if (row.sparse) say(fmt::format("  {}\n", sparse_text(*row.sparse)));
  if (!row.staleness.empty()) say(fmt::format("  staleness: {}\n", staleness_text(row.staleness)));
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
  say(fmt::format("{}\n", text), fmt::format("arbalest: {} ", label));
}

void ConsoleReporter::on_stop(int signal) { say(fmt::format("arbalest: {}\n", stop_text(signal))); }

void ConsoleReporter::on_finish(const RunSummary& summary) {
  if (bar_shown_) say("");
  if (!started_) return;
  if (summary.status == RunStatus::kFailed) {
    // A failed run has no result; whoever catches its error reports it.
    const std::string reached = reached_text(start_, summary);
    if (!reached.empty()) say(fmt::format("arbalest: before it failed: {}\n", reached));
    return;
  }
  if (summary.skipped_examples > 0) {
    say(fmt::format("arbalest: warning: mini-batches went without {} that could not be read; the first: {}\n",
                    counted(summary.skipped_examples, "image"), summary.first_skipped));
  }
  if (summary.unused_switches > 0) {
    say(
        fmt::format("arbalest: warning: {} of the synchronization had no effect: the next switch or the end of the run "
                    "came before a mini-batch\n",
                    summary.unused_switches == 1 ? "1 switch" : fmt::format("{} switches", summary.unused_switches)));
  }
  if (!summary.message.empty()) {
    const bool diverged = summary.status == RunStatus::kDiverged;
    say(fmt::format("arbalest: {}{}\n", diverged ? "error: " : "", summary.message));
  }
  const std::string text = safe_text(summary_text(start_, summary), TextFor::kTerminal);
  std::fwrite(text.data(), 1, text.size(), options_.results);
  std::fflush(options_.results);
}

}  // namespace arbalest::jobs
