#include "report/run_list.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "messages/text.h"
#include "report/json.h"
#include "report/run_directory.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::optional<double> number(const json& object, const std::string& field) {
  const auto value = object.find(field);
  const bool is_there = value != object.end() && value->is_number();
  return is_there ? std::optional(value->get<double>()) : std::nullopt;
}

std::string text(const json& object, const char* field) {
  const auto value = object.find(field);
  return value != object.end() && value->is_string() ? value->get<std::string>() : "";
}

bool is_rmse(const ListedRun& run) { return run.metric.ends_with("_rmse"); }

// Takes the score of an epoch's line.
void add_epoch(const json& epoch, ListedRun& run) {
  run.epochs = static_cast<int>(number(epoch, "epoch").value_or(run.epochs));
  run.time_seconds = number(epoch, "elapsed_seconds");
  run.metric = "test_accuracy";
  for (const char* metric : {"validation_accuracy", "validation_rmse", "test_rmse"}) {
    if (!epoch.contains(metric)) continue;
    run.metric = metric;
    break;
  }
  run.last = number(epoch, run.metric);
  if (!run.last) return;
  const auto better = [&](double a, double b) { return is_rmse(run) ? std::min(a, b) : std::max(a, b); };
  run.best = run.best ? better(*run.best, *run.last) : *run.last;
}

// Reads metrics.jsonl. Its last line may be incomplete: the run may be writing it, or may have been killed meanwhile.
// Returns whether the log's last process has ended the run.
bool read_metrics(const fs::path& path, ListedRun& run) {
  bool has_ended = true;
  std::ifstream file(path);
  if (!file) run.problem = fmt::format("{} cannot be read", kMetricsFile);
  int number_of_line = 0;
  for (std::string line; std::getline(file, line);) {
    ++number_of_line;
    const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) {
      if (!file.eof()) run.problem = fmt::format("{}:{} is damaged", kMetricsFile, number_of_line);
      continue;
    }
    const std::string event = text(row, "event");
    if (event == "start") run.job = text(row, "job");
    if (event == "resume") {
      has_ended = false;
      run.test.reset();
    }
    if (event == "finish") {
      has_ended = true;
      const std::optional<double> accuracy = number(row, "test_accuracy");
      run.test = accuracy ? accuracy : number(row, "test_rmse");
    }
    if (event == "epoch") add_epoch(row, run);
  }
  return has_ended;
}

std::string status_of(const fs::path& directory, bool has_ended, ListedRun& run) {
  std::error_code error;
  if (is_running(directory)) return "running";
  if (!has_ended) return "killed";  // its summary, if any, is that of a process before
  if (fs::exists(directory / kSummaryFile, error)) {
    std::ifstream file(directory / kSummaryFile);
    const json summary = json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (summary.is_object() && !text(summary, "status").empty()) return text(summary, "status");
    run.problem = fmt::format("{} is damaged", kSummaryFile);
    return "unknown";
  }
  return "killed";
}

bool is_run(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / kMetricsFile, error);
}

ListedRun read_run(const fs::path& directory) {
  ListedRun run;
  run.directory = directory;
  const bool has_ended = read_metrics(directory / kMetricsFile, run);
  run.status = status_of(directory, has_ended, run);
  return run;
}

// Adds the runs in `directory` and in the directories of benches below it, which hold one directory for each case. A
// run holds no other runs.
void find_runs(const fs::path& directory, int depth, std::error_code& error, std::vector<fs::path>& found) {
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (is_run(entry->path())) {
      found.push_back(entry->path());
    } else if (depth > 0 && !entry->is_symlink(unknown) && entry->is_directory(unknown)) {
      std::error_code unreadable;  // a directory that is none of ours may be closed to us
      find_runs(entry->path(), depth - 1, unreadable, found);
    }
  }
}

std::string score_text(const ListedRun& run, const std::optional<double>& score) {
  if (!score) return "";
  return is_rmse(run) ? fmt::format("{:.4f}", *score) : percent(*score);
}

}  // namespace

std::string status_of_run(const fs::path& directory) { return is_run(directory) ? read_run(directory).status : ""; }

std::vector<ListedRun> list_runs(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  constexpr int kBenchDepth = 2;  // runs/<bench>/<case>/<run>
  const bool is_one = is_run(directory);
  if (is_one) found.push_back(directory);
  find_runs(directory, is_one ? 0 : kBenchDepth, error, found);
  if (error) {
    engine::fail(engine::ErrorKind::kUsage, "cannot list the runs in '{}': {}", directory.string(), error.message());
  }
  std::ranges::sort(found);
  std::vector<ListedRun> runs;
  for (const fs::path& each : found) runs.push_back(read_run(each));
  return runs;
}

std::string runs_table(std::span<const ListedRun> runs) {
  std::vector<std::vector<std::string>> rows = {{"run", "status", "epochs", "set", "last", "best", "test", "time"}};
  for (const ListedRun& run : runs) {
    rows.push_back({run.directory.string(), run.status, fmt::format("{}", run.epochs),
                    run.metric.substr(0, run.metric.find('_')), score_text(run, run.last), score_text(run, run.best),
                    score_text(run, run.test), run.time_seconds ? duration(*run.time_seconds) : ""});
  }
  return table(rows, 2);
}

nlohmann::ordered_json to_json(const ListedRun& run) {
  return {{"run", run.directory.string()},
          {"job", run.job},
          {"status", run.status},
          {"epochs", run.epochs},
          {"metric", run.metric},
          {"last", null_unless_set(run.last)},
          {"best", null_unless_set(run.best)},
          {"test", null_unless_set(run.test)},
          {"elapsed_seconds", null_unless_set(run.time_seconds)},
          {"problem", run.problem}};
}

}  // namespace arbalest::jobs
