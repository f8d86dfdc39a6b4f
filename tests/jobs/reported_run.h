// A small run's events, and a full disk, for tests of the files that a run leaves.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <functional>
#include <limits>
#include <optional>

#include "engine/base/error.h"
#include "tests/support/metrics.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

inline RunStart some_start() {
  RunStart start;
  start.job_text =
      "name: \"trial\"\nmodel { zoo { lenet {} } }\ndata { digits {} }\nlearning_rate { base: 0.01 }\n"
      "devices: \"cpu\"\n";
  start.job = "trial";
  start.metrics = tests::classifier_metrics();
  start.devices = {"cpu:0-1", "cpu:2"};
  start.learners_per_device = {2, 1};
  start.learner_steps = {{0, {2, 1}}};
  return start;
}

inline EpochRow some_row() {
  EpochRow row;
  row.epoch = 1;
  row.train = Scores(tests::classifier_metrics(2), {}, 0);  // with two classes top-5 accuracy says nothing
  row.train.set("accuracy", 0.75);
  row.test = row.train;
  row.test.set("loss", 0.5);
  row.test.set("accuracy", 0.1 + 0.2);  // 17 digits
  row.learners_per_device = {2, 1};
  row.replica_distance = 0.0;
  row.replica_spread = 0.0;
  return row;
}

inline RunSummary some_summary() {
  RunSummary summary;
  summary.job = "trial";
  summary.metrics = tests::classifier_metrics();
  summary.status = RunStatus::kCompleted;
  summary.test.set("accuracy", 0.1 + 0.2);
  summary.learners = 2;
  summary.learners_per_device = {1, 1};
  summary.devices = {"cpu:0", "cpu:1"};
  summary.seed = std::numeric_limits<std::uint64_t>::max();
  return summary;
}

// The kind of the error that `action` throws; none if it throws none.
inline std::optional<engine::ErrorKind> failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    return error.kind();
  }
  return std::nullopt;
}

// In its scope, files cannot grow beyond `bytes`. A writer gets the error of a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

}  // namespace arbalest::jobs
