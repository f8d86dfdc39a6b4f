#include "study/bench/bench_run.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "report/run_directory.h"

namespace arbalest::jobs {

namespace {

std::optional<double> number_or_none(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = object.at(name);
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

// Returns none if the object lacks the field. An epoch has either the test accuracy or the validation accuracy.
std::optional<double> number_if_there(const nlohmann::json& object, const char* name) {
  return object.contains(name) ? number_or_none(object, name) : std::nullopt;
}

BenchOutcome outcome_of(const std::string& status, bool has_target) {
  if (status == "target_reached") return BenchOutcome::kReached;
  if (status == "completed") return has_target ? BenchOutcome::kNotReached : BenchOutcome::kCompleted;
  if (status == "diverged") return BenchOutcome::kDiverged;
  return status == "stopped" ? BenchOutcome::kStopped : BenchOutcome::kDied;
}

void read_metrics(const std::filesystem::path& path, BenchRun& run) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const std::string event = row.at("event");
    if (event == "start") run.phases.preparation = row.at("elapsed_seconds");
    if (event == "trace" && !run.rows.empty()) {
      run.rows.back().device_busy = number_or_none(row, "device_busy");
      run.rows.back().averaging_wait = number_or_none(row, "averaging_wait");
    }
    if (event == "rollback") {  // the run trains these epochs again
      const double kept = row.at("to_epoch");
      std::erase_if(run.rows, [&](const auto& of_epoch) { return of_epoch.epoch > kept; });
    }
    if (event != "epoch") continue;
    run.rows.push_back({.epoch = row.at("epoch"),
                        .elapsed_seconds = row.at("elapsed_seconds"),
                        .train_accuracy = number_if_there(row, "train_accuracy"),
                        .test_accuracy = number_if_there(row, "test_accuracy"),
                        .validation_accuracy = number_if_there(row, "validation_accuracy"),
                        .replica_distance = number_if_there(row, "replica_distance"),
                        .training_seconds = row.at("training_seconds"),
                        .evaluation_seconds = row.at("evaluation_seconds"),
                        .device_busy = {},
                        .averaging_wait = {}});
  }
}

void read_summary_into(const nlohmann::json& summary, bool has_target, BenchRun& run) {
  run.outcome = outcome_of(summary.at("status"), has_target);
  run.message = summary.at("message");
  run.learners = summary.at("learners");
  run.epochs = summary.at("epochs");
  run.train_seconds = summary.at("train_seconds");
  run.time_to_accuracy_seconds = number_or_none(summary, "time_to_accuracy_seconds");
  run.images_per_second = summary.at("images_per_second");
  run.test_accuracy = number_or_none(summary, "test_accuracy");
  run.best_test_accuracy = number_or_none(summary, "best_test_accuracy");
  const bool validates = summary.at("accuracy_set") == to_string(EvaluationSet::kValidation);
  run.accuracy_set = validates ? EvaluationSet::kValidation : EvaluationSet::kTest;
  run.validation_accuracy = number_if_there(summary, "validation_accuracy");
  run.best_validation_accuracy = number_if_there(summary, "best_validation_accuracy");
  if (!run.rows.empty()) run.replica_distance = run.rows.back().replica_distance;
}

// Images per second covers the training alone, including the last epoch even if it was not completed.
void divide_into_phases(double examples, BenchRun& run) {
  BenchPhases& phases = run.phases;
  phases.training = run.images_per_second > 0.0 ? examples / run.images_per_second : 0.0;
  for (const BenchEpoch& row : run.rows) {
    phases.evaluation += row.evaluation_seconds;
    if (!row.device_busy || !row.averaging_wait) continue;
    phases.working = phases.working.value_or(0.0) + *row.device_busy * row.training_seconds;
    phases.averaging_wait = phases.averaging_wait.value_or(0.0) + *row.averaging_wait * row.training_seconds;
  }
  phases.other = std::max(0.0, run.train_seconds - phases.preparation - phases.training - phases.evaluation);
}

}  // namespace

std::optional<double> BenchRun::seconds_per_epoch() const {
  if (rows.empty()) return std::nullopt;
  return (rows.back().elapsed_seconds - phases.preparation) / static_cast<double>(rows.size());
}

std::optional<HeldAccuracy> BenchRun::held_accuracy() const {
  AccuracyTarget target(std::nullopt);
  for (const BenchEpoch& row : rows) target.add(row.decisive_accuracy());
  return target.held();
}

const char* to_string(BenchOutcome outcome) {
  switch (outcome) {
    case BenchOutcome::kReached: return "target_reached";
    case BenchOutcome::kNotReached: return "not_reached";
    case BenchOutcome::kCompleted: return "completed";
    case BenchOutcome::kDiverged: return "diverged";
    case BenchOutcome::kDied: return "died";
    case BenchOutcome::kStopped: return "stopped";
    case BenchOutcome::kNotRun: return "not_run";
  }
  engine::fail(engine::ErrorKind::kInternal, "internal error: unknown outcome {}", static_cast<int>(outcome));
}

std::string read_run(const std::filesystem::path& path, bool has_target, BenchRun& run) {
  std::ifstream file(path / kSummaryFile);
  if (!file.is_open()) return fmt::format("it has left no {}", kSummaryFile);
  try {
    const nlohmann::json summary = nlohmann::json::parse(file);
    read_metrics(path / kMetricsFile, run);
    read_summary_into(summary, has_target, run);
    divide_into_phases(summary.at("examples"), run);
  } catch (const nlohmann::json::exception& error) {
    return fmt::format("'{}' cannot be read: {}", path.string(), error.what());
  }
  return "";
}

std::string last_line(const std::filesystem::path& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

}  // namespace arbalest::jobs
