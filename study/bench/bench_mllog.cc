#include "study/bench/bench_mllog.h"

#include <cmath>
#include <source_location>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

using nlohmann::ordered_json;

class MllogLines {
 public:
  explicit MllogLines(std::int64_t start_milliseconds) : start_(start_milliseconds) {}

  void point(double seconds, const char* key, const ordered_json& value, const ordered_json& metadata = {},
             std::source_location at = std::source_location::current()) {
    add(seconds, "POINT_IN_TIME", key, value, metadata, at);
  }
  void begin(double seconds, const char* key, const ordered_json& metadata = {},
             std::source_location at = std::source_location::current()) {
    add(seconds, "INTERVAL_START", key, {}, metadata, at);
  }
  void end(double seconds, const char* key, const ordered_json& metadata = {},
           std::source_location at = std::source_location::current()) {
    add(seconds, "INTERVAL_END", key, {}, metadata, at);
  }
  const std::string& text() const { return text_; }

 private:
  void add(double seconds, const char* type, const char* key, const ordered_json& value, const ordered_json& metadata,
           const std::source_location& at) {
    ordered_json place = {{"file", "study/bench/bench_mllog.cc"}, {"lineno", at.line()}};
    if (!metadata.is_null()) place.update(metadata);
    const ordered_json line = {{"namespace", ""},    {"time_ms", start_ + std::llround(1e3 * seconds)},
                               {"event_type", type}, {"key", key},
                               {"value", value},     {"metadata", place}};
    text_ += fmt::format(":::MLLOG {}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }

  std::int64_t start_;
  std::string text_;
};

}  // namespace

std::string to_mllog(const BenchResult& result, const BenchRun& run) {
  const BenchCase& of = result.plan.cases[run.case_index];
  MllogLines lines(run.start_milliseconds);
  // Every run is a process of its own, but the system's file cache is not cleared.
  lines.point(0.0, "cache_clear", false);
  lines.point(0.0, "submission_benchmark", of.label);
  lines.point(0.0, "seed", run.seed);
  if (result.plan.target) lines.point(0.0, "quality_target", *result.plan.target);
  if (run.learners > 0) lines.point(0.0, "global_batch_size", of.batch_size * run.learners);
  lines.begin(0.0, "init_start");
  lines.end(0.0, "init_stop");  // preparation is part of our clock
  lines.begin(0.0, "run_start");
  double last = run.phases.preparation;
  for (const BenchEpoch& row : run.rows) {
    const ordered_json number = {{"epoch_num", row.epoch}};
    const double trained = row.elapsed_seconds - row.evaluation_seconds;
    lines.begin(last, "epoch_start", number);
    lines.end(trained, "epoch_stop", number);
    lines.begin(trained, "eval_start", number);
    lines.point(row.elapsed_seconds, "eval_accuracy", row.decisive_accuracy(), number);
    lines.end(row.elapsed_seconds, "eval_stop", number);
    last = row.elapsed_seconds;
  }
  if (run.is_measured()) {
    const bool reached = run.outcome == BenchOutcome::kReached || run.outcome == BenchOutcome::kCompleted;
    lines.end(run.time_to_accuracy_seconds.value_or(run.train_seconds), "run_stop",
              {{"status", reached ? "success" : "aborted"}});
  } else if (run.train_seconds > 0.0) {
    lines.end(run.train_seconds, "run_stop", {{"status", "aborted"}});
  }
  return lines.text();
}

}  // namespace arbalest::jobs
