// Which number of learners reaches an accuracy first, and what accuracy it ends with: short trainings, for
// `arbalest tune --objective time-to-accuracy`. The fastest number need not be it: more learners need more epochs, and
// many of them end at a lower accuracy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/configuration.h"
#include "jobs/options/job_options.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

struct AccuracyStudyOptions {
  double target = 0.0;       // of the job's accuracy set (RunStart::accuracy_set), in (0, 1]
  bool every_count = false;  // not only octaves: 1, 2, 4 ...
};

// A training with a number of learners of each device, to the job's last epoch.
struct AccuracyPoint {
  int learners = 1;
  int threads = 1;                   // of each; 1 on a GPU
  std::optional<double> seconds{};   // of the whole clock (design section 8) until the target was reached
  std::optional<int> epochs{};       // until then
  std::optional<double> accuracy{};  // test, at the end; none where training diverged before an evaluation
  std::optional<double> best_accuracy{};
  std::optional<double> validation_accuracy{};  // alike, where there is a validation set
  std::optional<double> best_validation_accuracy{};
  double total_seconds = 0.0;  // to the last epoch
  double images_per_second = 0.0;
  std::int64_t learner_bytes = 0;  // what all learners of all devices take of memory
};

struct AccuracyStudy {
  std::string job;
  std::vector<std::string> devices;
  std::int64_t batch_size = 0;
  std::string precision;
  std::uint64_t seed = 0;
  double target = 0.0;
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // that the target is for
  int max_epochs = 0;
  int signal = 0;                     // that stopped it before all had trained, or 0
  std::optional<int> chosen{};        // learners of each device; none if the target was not reached
  std::string reason;                 // one sentence
  std::vector<AccuracyPoint> points;  // ascending in learners
};

// The accuracies that the target is compared with.
const std::optional<double>& final_accuracy(const AccuracyPoint& point, EvaluationSet set);
const std::optional<double>& best_accuracy(const AccuracyPoint& point, EvaluationSet set);

// The point that reached the target first; of those within 3 % of its time the one of the fewest learners, as a
// single training does not tell them apart. Null if none reached it.
const AccuracyPoint* choose(const std::vector<AccuracyPoint>& points);

// Numbers of learners that are trained with, ascending: octaves of those that suit all devices of the job, or every
// number within its bounds; with the threads that the first device gives to each.
std::vector<autotuner::Configuration> studied_counts(const JobOptions& job, bool every_count);

// `job` has bounds (JobOptions::tuned). One training with its seed for each number, one after the other, in ascending
// order, up to the first that does not fit into memory; throws what training throws, kOutOfMemory only if the first
// does not fit. A training that diverges is a point without the target. Keeps nothing. A stop signal of the
// context ends the training under way, which is then no point, and the study. `tell` gets a line for each evaluation.
AccuracyStudy study_accuracy(const JobOptions& job, const RunContext& context, const AccuracyStudyOptions& options,
                             const std::function<void(const std::string&)>& tell);

}  // namespace arbalest::jobs
