#include "study/bench/bench_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "messages/text.h"
#include "report/json.h"
#include "saved_model/atomic_file.h"
#include "study/bench/bench_charts.h"
#include "study/bench/bench_mllog.h"
#include "study/bench/bench_page.h"
#include "study/bench/bench_tables.h"

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
               {"replica_distance", null_unless_set(run.replica_distance)},
               {"phase_seconds", to_json(run.phases)},
               {"processor", to_json(run.processor)},
               {"processor_seconds_per_image", null_unless_set(run.processor_seconds_per_image())}});
  const bool validates = run.accuracy_set == EvaluationSet::kValidation;
  if (validates) {
    json["validation_accuracy"] = null_unless_set(run.validation_accuracy);
    json["best_validation_accuracy"] = null_unless_set(run.best_validation_accuracy);
  }
  ordered_json& rows = json["epoch_rows"] = ordered_json::array();
  for (const BenchEpoch& row : run.rows) {
    rows.push_back({{"epoch", row.epoch},
                    {"elapsed_seconds", row.elapsed_seconds},
                    {"train_accuracy", null_unless_set(row.train_accuracy)},
                    {"replica_distance", null_unless_set(row.replica_distance)},
                    {"training_seconds", row.training_seconds},
                    {"evaluation_seconds", row.evaluation_seconds}});
    if (row.test_accuracy) rows.back()["test_accuracy"] = *row.test_accuracy;
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
                       {"name", of.name},
                       {"series", of.series_name},
                       {"job", of.job},
                       {"job_file", of.job_path},
                       {"job_sha256", of.job_sha256},
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
                       {"best_test_accuracy", to_json(statistics.best_test_accuracy)},
                       {"validation_accuracy", to_json(statistics.validation_accuracy)},
                       {"best_validation_accuracy", to_json(statistics.best_validation_accuracy)},
                       {"replica_distance", to_json(statistics.replica_distance)},
                       {"phase_seconds", to_json(statistics.phases)}};
  ordered_json& epochs = json["epoch_accuracy"] = ordered_json::array();
  for (const BenchEpochSpread& epoch : spreads_by_epoch(runs)) {
    epochs.push_back({{"epoch", epoch.epoch},
                      {"runs", epoch.runs},
                      {"train_accuracy", to_json(epoch.train_accuracy)},
                      {"test_accuracy", to_json(epoch.test_accuracy)},
                      {"validation_accuracy", to_json(epoch.validation_accuracy)}});
  }
  ordered_json& list = json["runs"] = ordered_json::array();
  for (const BenchRun& run : runs) list.push_back(to_json(run));
  return json;
}

// Lines about the runs that the table cannot show.
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

std::string time_table(const BenchResult& result) {
  TableRows rows = {{"job",
                     fmt::format("reached {} {}", target_percent(*result.plan.target), result.plan.accuracy_text()),
                     "epochs to target", "s per epoch", "s to target", "trimmed mean", "images/s"}};
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    const BenchStatistics of = summarize(runs_of(result, i));
    rows.push_back({result.plan.cases[i].label, how_many(of, true), spread_text(of.epochs_to_target, of.measured, 0),
                    spread_text(of.seconds_per_epoch, of.measured, 2), spread_text(of.time_to_accuracy, of.measured, 2),
                    of.trimmed_mean_seconds ? fmt::format("{:.2f}", *of.trimmed_mean_seconds) : "-",
                    spread_text(of.images_per_second, of.measured, 0)});
  }
  return table(rows, 2);
}

// Removes the file of a chart that is no longer drawn.
void write_chart(const std::optional<LineChart>& chart, const std::filesystem::path& path) {
  if (chart) {
    write_file(path, as_document(to_svg(*chart)));
  } else {
    std::filesystem::remove(path);
  }
}

}  // namespace

std::vector<BenchRun> runs_of(const BenchResult& result, std::size_t case_index) {
  std::vector<BenchRun> runs;
  for (const BenchRun& run : result.runs) {
    if (run.case_index == case_index) runs.push_back(run);
  }
  return runs;
}

const char* status_of(const BenchResult& result) {
  if (result.signal != 0) return "stopped";
  return result.ended() == static_cast<int>(result.runs.size()) ? "complete" : "running";
}

ordered_json to_json(const BenchResult& result) {
  ordered_json resumptions = ordered_json::array();
  for (const BenchResumption& of : result.resumptions) {
    resumptions.push_back({{"started", of.started}, {"runs_kept", of.runs_kept}, {"changed", of.changed}});
  }
  ordered_json cases = ordered_json::array();
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) cases.push_back(to_json(result, i));
  return {{"command", result.command},
          {"started", result.started},
          {"status", status_of(result)},
          {"target_accuracy", null_unless_set(result.plan.target)},
          {"target_reads", result.plan.target ? ordered_json(result.plan.accuracy_text()) : ordered_json()},
          {"seeds", result.plan.seeds},
          {"traced", result.traced},
          {"resumptions", resumptions},
          {"machine", result.machine},
          {"disturbed_runs", disturbed_runs(result)},
          {"load_average", {{"begin", result.load_at_begin}, {"end", result.load_at_end}}},
          {"cases", cases}};
}

std::string to_text(const BenchResult& result) {
  std::string text;
  if (result.plan.target) text += time_table(result) + "\n";
  text += table(accuracy_rows(result), 2) + "\n";
  const TableRows epochs = epoch_rows(result, false);
  if (!epochs.empty()) text += result.plan.accuracy_text() + " after epochs, %\n" + table(epochs, 1) + "\n";
  return text + table_notes(result) + "\n" + resumption_notes(result) + missing_runs(result);
}

std::string resumption_notes(const BenchResult& result) {
  std::string notes;
  for (const BenchResumption& of : result.resumptions) {
    notes += fmt::format("Resumed at {} after {} of {} runs", of.started, of.runs_kept, result.runs.size());
    if (!of.changed.empty()) notes += fmt::format("; changed since the bench began: {}", fmt::join(of.changed, ", "));
    notes += ".\n";
  }
  return notes;
}

void write_bench(const BenchResult& result, const std::filesystem::path& directory) {
  write_file(directory / kBenchJson,
             to_json(result).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  write_file(directory / kBenchPage, to_page(result));
  write_file(directory / kBenchMarkdown, to_markdown(result));
  write_file(directory / kEpochChart, as_document(to_svg(accuracy_over_epochs(result))));
  write_chart(accuracy_over_learners(result), directory / kLearnerChart);
}

void write_mllog(const BenchResult& result, const BenchRun& run, const std::filesystem::path& directory) {
  write_file(directory / (run.directory + ".mllog"), to_mllog(result, run));
}

}  // namespace arbalest::jobs
