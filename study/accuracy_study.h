// Finds the number of learners that reaches an accuracy first, and the accuracy it ends with, by short trainings, for
// `arbalest tune --objective time-to-accuracy`. The number with the highest throughput need not be the first: more
// learners need more epochs, and many of them end at a lower accuracy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/configuration.h"
#include "options/job_options.h"
#include "train/train.h"

namespace arbalest::jobs {

struct AccuracyStudyOptions {
  double target = 0.0;                 // on the job's accuracy set (RunStart::accuracy_set), in (0, 1]
  bool every_count = false;            // false: octaves only (1, 2, 4 ...)
  std::vector<std::uint64_t> seeds{};  // one training each; empty: the job's seed
};

// One training up to the job's last epoch.
struct AccuracyRun {
  std::uint64_t seed = 0;
  std::optional<double> seconds{};   // until the target was reached, from the start of the run, evaluation included
  std::optional<int> epochs{};       // until the target was reached
  std::optional<double> accuracy{};  // test accuracy at the end; none if training diverged before an evaluation
  std::optional<double> best_accuracy{};
  std::optional<double> validation_accuracy{};  // the same on the validation set, if there is one
  std::optional<double> best_validation_accuracy{};
  double total_seconds = 0.0;  // to the last epoch
  double images_per_second = 0.0;
};

// The trainings with one number of learners per device.
struct AccuracyPoint {
  int learners = 1;
  int threads = 1;                  // per learner; 1 on a GPU
  std::int64_t learner_bytes = 0;   // memory of all learners on all devices
  std::vector<AccuracyRun> runs{};  // at least one, in the order of the seeds

  // Median of the seconds until the target was reached. A run that did not reach it counts as infinitely long; none if
  // the median is such a run.
  std::optional<double> seconds() const;
  // Least and most seconds until the target was reached; `most` is infinite if a run did not reach it.
  double least_seconds() const;
  double most_seconds() const;
};

// Median over the runs of a value that every run has or may lack; none if half of the runs or more lack it. Of an even
// number of runs, the lower one.
std::optional<double> median(const AccuracyPoint& point,
                             const std::function<std::optional<double>(const AccuracyRun&)>& value);

struct AccuracyStudy {
  std::string job;
  std::vector<std::string> devices;
  std::int64_t batch_size = 0;
  std::string precision;
  std::vector<std::uint64_t> seeds{};
  double target = 0.0;
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // set that the target refers to
  int max_epochs = 0;
  int signal = 0;  // signal that stopped the study before the last training, or 0
  // Learners per device; none if the target was not reached, or if the seeds' spread hides which number is first.
  std::optional<int> chosen{};
  bool reached = false;               // whether any number reached the target
  std::string reason;                 // one sentence
  std::vector<AccuracyPoint> points;  // ascending in learners
};

// The accuracies that are compared with the target.
const std::optional<double>& final_accuracy(const AccuracyRun& run, EvaluationSet set);
const std::optional<double>& best_accuracy(const AccuracyRun& run, EvaluationSet set);

// Which point reached the target first?
struct AccuracyChoice {
  const AccuracyPoint* first = nullptr;          // the least median time; null if no point reached the target
  const AccuracyPoint* chosen = nullptr;         // null if `first` is null or `indistinct` is not empty
  std::vector<const AccuracyPoint*> indistinct;  // with several seeds: points whose times overlap those of `first`
};

// With one seed, points within 3 % of the first one's time count as equal, because a single training cannot tell them
// apart; of these the one with the fewest learners is chosen. With several seeds, the first point is chosen only if the
// ranges of its times and of every other point's times do not overlap.
AccuracyChoice choose(const std::vector<AccuracyPoint>& points);

// Numbers of learners to train with, ascending: octaves of those that suit all devices of the job, or every number
// within its bounds. The threads are those of the first device.
std::vector<autotuner::Configuration> studied_counts(const JobOptions& job, bool every_count);

// Trains once for each seed and each number of learners, in ascending order of the numbers, up to the first number that
// does not fit into memory. `job` must have bounds (JobOptions::tuned). Stores nothing.
//
// Throws what training throws; kOutOfMemory only if the first number does not fit. A training that diverges gives a
// point without time to the target. A stop signal of the context ends the study; the number of learners under way
// gives no point. `note` gets a line for each evaluation.
AccuracyStudy study_accuracy(const JobOptions& job, const RunContext& context, const AccuracyStudyOptions& options,
                             const std::function<void(const std::string&)>& note);

}  // namespace arbalest::jobs
