// What happens in a run, told to whoever shows or keeps it. Called on the Trainer's thread, between rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/decision.h"
#include "engine/precision.h"

namespace arbalest::jobs {

// A set of examples that a model is evaluated on.
enum class EvaluationSet {
  kTest,
  kValidation  // left out of the training set
};

// "test", "validation"
const char* to_string(EvaluationSet set);

// What a model is judged by on such a set.
enum class Metric {
  kAccuracy,  // of classifiers
  kRmse       // root mean squared error, of predictors of numbers
};

struct RunStart {
  std::string job;
  std::string model;  // one line: "8 layers, 431,080 parameters"
  std::string data;   // one line: "mnist: 60,000 training and 10,000 test examples"
  std::vector<std::string> devices;
  std::vector<int> learners_per_device;
  bool is_tuned = false;  // their number is found while training
  std::int64_t classes = 0;
  Metric metric = Metric::kAccuracy;
  std::int64_t batch_size = 0;  // per learner
  engine::Precision precision = engine::Precision::kFloat32;
  int max_epochs = 0;
  std::optional<double> target_accuracy;
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // whose accuracy that is
  std::int64_t dropped_examples = 0;                  // of every epoch: the last partial mini-batch
  double elapsed_seconds = 0.0;                       // since the clock started: reading data and preparing learners
  std::vector<std::string> warnings;
  std::string output_directory;
  std::string job_text;  // JobOptions::resolved_text of the job that runs
};

// Where the run stands, at most a few times a second, and not before there is something to tell.
struct RunProgress {
  double epoch = 0.0;  // examples seen / examples of one epoch
  int max_epochs = 0;
  double train_loss = 0.0;         // mean over the epoch so far
  double images_per_second = 0.0;  // over the epoch so far
  double elapsed_seconds = 0.0;
  double remaining_seconds = 0.0;  // estimate up to max_epochs
};

// One row of metrics.jsonl (names: design section 8).
struct EpochRow {
  int epoch = 0;  // 1 after the first
  double train_loss = 0.0;
  double test_loss = 0.0;
  double test_accuracy = 0.0;
  std::optional<double> test_top5_accuracy{};  // where there are more than five classes
  std::optional<double> test_rmse{};           // instead of both, where that is the metric
  // Present where there is a validation set.
  std::optional<double> validation_loss{};
  std::optional<double> validation_accuracy{};
  std::optional<double> validation_rmse{};  // instead, where that is the metric
  double images_per_second = 0.0;           // training examples / seconds of training, evaluation not counted
  double elapsed_seconds = 0.0;
  double learning_rate = 0.0;
  std::vector<int> learners_per_device;
  double replica_distance = 0.0;  // sqrt(mean over learners of |w_j - z|^2) at the last averaging
  double replica_spread = 0.0;    // sqrt(mean over learners of |w_j - mean of w|^2), alike
  // Loss of the model less the mean loss of the learners' own weights on the set that decides; where the job asks.
  std::optional<double> averaging_loss_gap = {};
  double training_seconds = 0.0;  // of this epoch, without its evaluation
  double evaluation_seconds = 0.0;
  double host_microseconds_per_step = 0.0;  // CPU time of the one host thread that enqueues, per mini-batch

  // The accuracy and loss on the set that the target accuracy is for (RunStart::accuracy_set).
  double decisive_accuracy() const { return validation_accuracy.value_or(test_accuracy); }
  double decisive_loss() const { return validation_loss.value_or(test_loss); }
};

// The number of learners has changed, or, if `to` is `from`, the auto-tuner has something to say of it.
struct ResizeRow {
  std::uint64_t batch = 0;  // mini-batches before
  double epoch = 0.0;       // the same as a number of epochs
  double elapsed_seconds = 0.0;
  std::vector<int> from;  // learners by device
  std::vector<int> to;
  std::string reason;  // one sentence
  // What the auto-tuner's decision rests on; none where a schedule is followed.
  std::optional<autotuner::Evidence> evidence;
};

// Learners are kept together by another scheme from here on.
struct SwitchRow {
  std::uint64_t batch = 0;  // mini-batches before
  double epoch = 0.0;       // the same as a number of epochs
  double elapsed_seconds = 0.0;
  std::string from;  // "s_sgd"
  std::string to;
  std::vector<int> learners_per_device;  // from here on
};

enum class RunStatus { kTargetReached, kCompleted, kStopped, kDiverged, kFailed };

struct RunSummary {
  std::string job;
  RunStatus status = RunStatus::kFailed;
  std::string message;  // why, unless completed or target reached; "" otherwise
  Metric metric = Metric::kAccuracy;
  // Of the model as it is at the end; none where it has not been measured, or another is the metric.
  std::optional<double> test_accuracy;
  std::optional<double> test_top5_accuracy;  // where there are more than five classes
  std::optional<double> test_loss;
  std::optional<double> best_test_accuracy;  // none before the first evaluation
  std::optional<double> test_rmse;           // as test_accuracy and its best
  std::optional<double> best_test_rmse;
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // that time_to_accuracy_seconds reads
  // The same on the validation set; none where there is no such set.
  std::optional<double> validation_accuracy{};
  std::optional<double> validation_loss{};
  std::optional<double> best_validation_accuracy{};
  std::optional<double> validation_rmse{};
  std::optional<double> best_validation_rmse{};
  int epochs = 0;                     // completed
  std::int64_t examples = 0;          // trained on
  std::int64_t skipped_examples = 0;  // reads of examples that could not be read, in training and evaluation
  std::string first_skipped;          // what was wrong with the first of them
  double epochs_begun = 0.0;          // the same as a number of epochs: 0.6
  double train_seconds = 0.0;         // the whole clock: preparation, reading, training, evaluation
  std::optional<double> time_to_accuracy_seconds;
  double images_per_second = 0.0;  // training examples / seconds of training
  int learners = 0;
  std::vector<int> learners_per_device;
  std::vector<std::string> devices;
  engine::Precision precision = engine::Precision::kFloat32;
  std::uint64_t seed = 0;
  std::string model_sha256;  // of model.safetensors
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Before anything else: data is about to be read or rendered, and learners to be created, which may take seconds.
  virtual void on_prepare() {}
  virtual void on_start(const RunStart& start) = 0;
  virtual void on_progress(const RunProgress& progress) = 0;
  virtual void on_epoch(const EpochRow& row) = 0;
  virtual void on_resize(const ResizeRow& row) { static_cast<void>(row); }
  virtual void on_switch(const SwitchRow& row) { static_cast<void>(row); }
  // The signal of that number asks the run to stop; it will, after the stride under way (scheduler::Scheduler).
  virtual void on_stop(int signal) { static_cast<void>(signal); }
  virtual void on_finish(const RunSummary& summary) = 0;
};

}  // namespace arbalest::jobs
