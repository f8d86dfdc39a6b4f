#include "jobs/study/bench_report.h"

#include <cmath>

#include <fmt/format.h>

#include "jobs/export/atomic_file.h"
#include "jobs/report/json.h"
#include "jobs/study/bench_mllog.h"
#include "jobs/study/bench_page.h"
#include "jobs/wording/text.h"

namespace arbalest::jobs {

using nlohmann::ordered_json;

namespace {

ordered_json to_json(const BenchSpread& spread) {
  return {{"median", null_unless_set(spread.median)},
          {"least", null_unless_set(spread.least)},
          {"most", null_unless_set(spread.most)}};
}

ordered_json to_json(const BenchPhases& phases) {
  return {{"preparation", phases.preparation},
          {"training", phases.training},
          {"training_working", null_unless_set(phases.working)},
          {"training_averaging_wait", null_unless_set(phases.averaging_wait)},
          {"evaluation", phases.evaluation},
          {"other", phases.other}};
}

ordered_json to_json(const BenchRun& run) {
  ordered_json json = {{"seed", run.seed},
                       {"outcome", to_string(run.outcome)},
                       {"message", run.message},
                       {"exit_code", run.exit_code},
                       {"directory", run.directory},
                       {"log", run.log},
                       {"start_milliseconds", run.start_milliseconds}};
  if (!run.is_measured()) return json;
  json.update({{"learners", run.learners},
               {"epochs", run.epochs},
               {"train_seconds", run.train_seconds},
               {"time_to_accuracy_seconds", null_unless_set(run.time_to_accuracy_seconds)},
               {"seconds_per_epoch", null_unless_set(run.seconds_per_epoch())},
               {"images_per_second", run.images_per_second},
               {"test_accuracy", null_unless_set(run.test_accuracy)},
               {"best_test_accuracy", null_unless_set(run.best_test_accuracy)},
               {"accuracy_set", to_string(run.accuracy_set)},
               {"phase_seconds", to_json(run.phases)}});
  const bool validates = run.accuracy_set == EvaluationSet::kValidation;
  if (validates) {
    json["validation_accuracy"] = null_unless_set(run.validation_accuracy);
    json["best_validation_accuracy"] = null_unless_set(run.best_validation_accuracy);
  }
  ordered_json& rows = json["epoch_rows"] = ordered_json::array();
  for (const BenchEpoch& row : run.rows) {
    rows.push_back({{"epoch", row.epoch},
                    {"elapsed_seconds", row.elapsed_seconds},
                    {"test_accuracy", row.test_accuracy},
                    {"training_seconds", row.training_seconds},
                    {"evaluation_seconds", row.evaluation_seconds}});
    if (row.validation_accuracy) rows.back()["validation_accuracy"] = *row.validation_accuracy;
  }
  return json;
}

ordered_json to_json(const BenchResult& result, std::size_t index) {
  const BenchCase& of = result.plan.cases[index];
  const std::vector<BenchRun> runs = runs_of(result, index);
  const BenchStatistics statistics = summarize(runs);
  ordered_json varied = ordered_json::object();
  for (const auto& [path, value] : of.varied) varied[path] = value;
  ordered_json json = {{"label", of.label},
                       {"job", of.job},
                       {"job_file", of.job_path},
                       {"settings", of.settings},
                       {"varied", varied},
                       {"batch_size", of.batch_size},
                       {"runs_planned", statistics.runs},
                       {"runs_measured", statistics.measured},
                       {"reached", statistics.reached},
                       {"not_converged", statistics.not_converged},
                       {"diverged", statistics.diverged},
                       {"died", statistics.died},
                       {"stopped", statistics.stopped},
                       {"time_to_accuracy_seconds", to_json(statistics.time_to_accuracy)},
                       {"trimmed_mean_seconds", null_unless_set(statistics.trimmed_mean_seconds)},
                       {"epochs_to_target", to_json(statistics.epochs_to_target)},
                       {"seconds_per_epoch", to_json(statistics.seconds_per_epoch)},
                       {"images_per_second", to_json(statistics.images_per_second)},
                       {"test_accuracy", to_json(statistics.test_accuracy)},
                       {"phase_seconds", to_json(statistics.phases)}};
  ordered_json& list = json["runs"] = ordered_json::array();
  for (const BenchRun& run : runs) list.push_back(to_json(run));
  return json;
}

std::string how_many(const BenchStatistics& statistics) {
  std::string text = fmt::format("{} of {}", statistics.reached, statistics.runs);
  if (statistics.diverged > 0) text += fmt::format(", {} diverged", statistics.diverged);
  if (statistics.died > 0) text += fmt::format(", {} died", statistics.died);
  if (statistics.stopped > 0) text += fmt::format(", {} not run to the end", statistics.stopped);
  return text;
}

// Of runs that the table cannot show.
std::string missing_runs(const BenchResult& result) {
  std::string text;
  int not_run = 0;
  for (const BenchRun& run : result.runs) {
    if (run.outcome == BenchOutcome::kNotRun) ++not_run;
    if (run.outcome != BenchOutcome::kDied && run.outcome != BenchOutcome::kStopped) continue;
    text += fmt::format("{}, seed {}: {}{}; log: {}\n", result.plan.cases[run.case_index].label, run.seed,
                        run.outcome == BenchOutcome::kDied ? "died: " : "stopped",
                        run.outcome == BenchOutcome::kDied ? run.message : "", run.log);
  }
  if (not_run > 0) text += fmt::format("{} did not run: the bench was stopped\n", counted(not_run, "run"));
  return text;
}

}  // namespace

std::vector<BenchRun> runs_of(const BenchResult& result, std::size_t case_index) {
  std::vector<BenchRun> runs;
  for (const BenchRun& run : result.runs) {
    if (run.case_index == case_index) runs.push_back(run);
  }
  return runs;
}

std::string spread_text(const BenchSpread& spread, int count, int decimals) {
  if (count == 0) return "-";
  const auto text = [&](const std::optional<double>& value) {
    if (!value) return std::string("not reached");
    return *value >= 1000.0 ? grouped(std::llround(*value)) : fmt::format("{:.{}f}", *value, decimals);
  };
  if (count == 1 || !spread.least) return text(spread.median);
  return fmt::format("{} ({} to {})", text(spread.median), text(spread.least), text(spread.most));
}

const char* status_of(const BenchResult& result) {
  if (result.signal != 0) return "stopped";
  return result.ended() == static_cast<int>(result.runs.size()) ? "complete" : "running";
}

ordered_json to_json(const BenchResult& result) {
  ordered_json cases = ordered_json::array();
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) cases.push_back(to_json(result, i));
  return {{"command", result.command},
          {"started", result.started},
          {"status", status_of(result)},
          {"target_accuracy", result.plan.target},
          {"seeds", result.plan.seeds},
          {"machine", result.machine},
          {"load_average", {{"begin", result.load_at_begin}, {"end", result.load_at_end}}},
          {"cases", cases}};
}

std::string to_text(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows = {
      {"job", fmt::format("reached {} {}", percent(result.plan.target), result.plan.accuracy_text()),
       "epochs to target", "s per epoch", "s to target", "trimmed mean", "images/s"}};
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    const BenchStatistics of = summarize(runs_of(result, i));
    rows.push_back({result.plan.cases[i].label, how_many(of), spread_text(of.epochs_to_target, of.measured, 0),
                    spread_text(of.seconds_per_epoch, of.measured, 2), spread_text(of.time_to_accuracy, of.measured, 2),
                    of.trimmed_mean_seconds ? fmt::format("{:.2f}", *of.trimmed_mean_seconds) : "-",
                    spread_text(of.images_per_second, of.measured, 0)});
  }
  return table(rows, 2) +
         "medians (and least to most) over seeds; a run that did not reach the target counts as slower than all that "
         "did\n" +
         missing_runs(result);
}

void write_bench(const BenchResult& result, const std::filesystem::path& directory) {
  write_file(directory / kBenchJson,
             to_json(result).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  write_file(directory / kBenchPage, to_page(result));
}

void write_mllog(const BenchResult& result, const BenchRun& run, const std::filesystem::path& directory) {
  write_file(directory / (run.directory + ".mllog"), to_mllog(result, run));
}

}  // namespace arbalest::jobs
