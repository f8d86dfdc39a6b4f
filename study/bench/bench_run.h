// One run of a bench, read from the files that it has left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "study/bench/bench_processor.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

enum class BenchOutcome {
  kReached,     // reached the target
  kNotReached,  // trained all epochs without reaching it
  kCompleted,   // trained all epochs, and there was no target
  kDiverged,
  kDied,     // ended by another error, by a foreign signal, or without a summary
  kStopped,  // ended by our own stop signal
  kNotRun    // the bench was stopped before it began
};

// A row of metrics.jsonl.
struct BenchEpoch {
  int epoch = 0;
  double elapsed_seconds = 0.0;
  std::optional<double> train_accuracy{};
  std::optional<double> test_accuracy{};        // none if the test set is evaluated at the end only
  std::optional<double> validation_accuracy{};  // if the job has a validation set
  std::optional<double> replica_distance;       // none if not finite
  double training_seconds = 0.0;
  double evaluation_seconds = 0.0;
  // Fractions of the training time; known if the run was traced, on a CPU.
  std::optional<double> device_busy;
  std::optional<double> averaging_wait;

  // The accuracy that is compared with the target.
  double decisive_accuracy() const { return validation_accuracy ? *validation_accuracy : test_accuracy.value_or(0.0); }
};

// Parts of a run's whole clock, in seconds; they add up to train_seconds.
struct BenchPhases {
  double preparation = 0.0;  // reading data, making plans and learners
  double training = 0.0;
  // Parts of `training`, if the traces tell how the learners spent it; none without any epoch.
  std::optional<double> working;
  std::optional<double> averaging_wait;
  double evaluation = 0.0;
  double other =
      0.0;  // saving, reporting, resizing, and the evaluation of the test set if it is evaluated at the end only
};

struct BenchRun {
  std::size_t case_index = 0;
  std::uint64_t seed = 0;
  BenchOutcome outcome = BenchOutcome::kNotRun;
  std::string message;                  // the reason, unless the target was reached; "" otherwise
  int exit_code = 0;                    // 128 + signal if a signal ended it
  std::string directory;                // below the bench's directory; "" if it has not run
  std::string log;                      // likewise
  std::int64_t start_milliseconds = 0;  // since 1970
  // These are unknown for runs that died or did not run.
  int learners = 0;
  int epochs = 0;
  double train_seconds = 0.0;
  std::optional<double> time_to_accuracy_seconds;
  double images_per_second = 0.0;
  std::optional<double> test_accuracy;
  std::optional<double> best_test_accuracy;           // none if the test set was evaluated at the end only
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // set that the target refers to
  std::optional<double> validation_accuracy;          // if there is a validation set
  std::optional<double> best_validation_accuracy;
  std::optional<double> replica_distance;  // at the end of the last epoch
  BenchPhases phases;
  std::optional<BenchProcessor> processor{};  // of the whole process; none if it is not known
  std::vector<BenchEpoch> rows;

  // Processor seconds of the whole process for an image of the training; none if they are not known.
  std::optional<double> processor_seconds_per_image() const {
    const double images = images_per_second * phases.training;
    return processor && images > 0.0 ? std::optional(processor->used / images) : std::nullopt;
  }

  // Seconds per epoch between the end of preparation and the last epoch's evaluation.
  std::optional<double> seconds_per_epoch() const;
  // The last of the accuracies that are compared with the target, and the best of them.
  const std::optional<double>& final_accuracy() const {
    return accuracy_set == EvaluationSet::kTest ? test_accuracy : validation_accuracy;
  }
  const std::optional<double>& best_accuracy() const {
    return accuracy_set == EvaluationSet::kTest ? best_test_accuracy : best_validation_accuracy;
  }
  // The accuracy that was compared with the target last; none before the first epoch's end.
  std::optional<HeldAccuracy> held_accuracy() const;
  // Whether the run tells how long the job takes, and did not end for another reason.
  bool is_measured() const {
    return outcome == BenchOutcome::kReached || outcome == BenchOutcome::kNotReached ||
           outcome == BenchOutcome::kCompleted || outcome == BenchOutcome::kDiverged;
  }
};

// "target_reached", "not_reached", "completed", "diverged", "died", "stopped", "not_run"
const char* to_string(BenchOutcome outcome);

// Fills `run` from the directory at `path` of a run with or without a target. Returns what is wrong with the directory,
// "" if nothing is.
std::string read_run(const std::filesystem::path& path, bool has_target, BenchRun& run);

// The last line of a log that is not empty; "" if there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace arbalest::jobs
