// One run of a bench, read from what it has left on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "jobs/run/run_observer.h"

namespace arbalest::jobs {

enum class BenchOutcome {
  kReached,     // the target
  kNotReached,  // trained all epochs
  kCompleted,   // trained all epochs, and there was no target
  kDiverged,
  kDied,     // ended by another error, by a signal of somebody else, or without a summary
  kStopped,  // by our own stop signal
  kNotRun    // the bench was stopped before
};

// A row of metrics.jsonl.
struct BenchEpoch {
  int epoch = 0;
  double elapsed_seconds = 0.0;
  double test_accuracy = 0.0;
  std::optional<double> validation_accuracy;  // where the job has a validation set
  std::optional<double> replica_distance;     // none where it was not finite
  double training_seconds = 0.0;
  double evaluation_seconds = 0.0;
  // Shares of the training, where the run was traced, and on a CPU.
  std::optional<double> device_busy;
  std::optional<double> averaging_wait;

  // The accuracy that the target is compared with.
  double decisive_accuracy() const { return validation_accuracy.value_or(test_accuracy); }
};

// Of the whole clock of a run; they add up to train_seconds.
struct BenchPhases {
  double preparation = 0.0;  // reading data, making plans and learners
  double training = 0.0;
  // Parts of the training, where it is known how the learners spend it; none is where there is no epoch.
  std::optional<double> working;
  std::optional<double> averaging_wait;
  double evaluation = 0.0;
  double other = 0.0;  // saving, reporting, resizing
};

struct BenchRun {
  std::size_t case_index = 0;
  std::uint64_t seed = 0;
  BenchOutcome outcome = BenchOutcome::kNotRun;
  std::string message;                  // why, unless it reached the target; "" otherwise
  int exit_code = 0;                    // 128 + signal if one ended it
  std::string directory;                // of the run, below the bench's; "" if it has not run
  std::string log;                      // alike
  std::int64_t start_milliseconds = 0;  // since 1970
  // Nothing below is known of runs that died or did not run.
  int learners = 0;
  int epochs = 0;
  double train_seconds = 0.0;
  std::optional<double> time_to_accuracy_seconds;
  double images_per_second = 0.0;
  std::optional<double> test_accuracy;
  std::optional<double> best_test_accuracy;
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // that the target is for
  std::optional<double> validation_accuracy;          // where there is a validation set
  std::optional<double> best_validation_accuracy;
  std::optional<double> replica_distance;  // at the end of the last epoch
  BenchPhases phases;
  std::vector<BenchEpoch> rows;

  // Clock between the end of preparation and the last epoch's evaluation, by epoch.
  std::optional<double> seconds_per_epoch() const;
  // The best of the accuracy that the target is compared with.
  const std::optional<double>& best_accuracy() const {
    return accuracy_set == EvaluationSet::kTest ? best_test_accuracy : best_validation_accuracy;
  }
  // Whether it tells how long the job takes, and not only that something else happened.
  bool is_measured() const {
    return outcome == BenchOutcome::kReached || outcome == BenchOutcome::kNotReached ||
           outcome == BenchOutcome::kCompleted || outcome == BenchOutcome::kDiverged;
  }
};

// "target_reached", "not_reached", "completed", "diverged", "died", "stopped", "not_run"
const char* to_string(BenchOutcome outcome);

// Fills `run` from the directory at `path`, which a run with or without a target has left. Returns what is wrong with
// it, and "" if nothing is.
std::string read_run(const std::filesystem::path& path, bool has_target, BenchRun& run);

// The last line of a log in which there is something; "" if there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace arbalest::jobs
