// What happens in a run, told to whoever shows or keeps it. Called on the Trainer's thread, between rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arbalest::jobs {

struct RunStart {
  std::string job;
  std::string model;  // one line: "8 layers, 431,080 parameters"
  std::string data;   // one line: "mnist: 60,000 training and 10,000 test examples"
  std::vector<std::string> devices;
  std::vector<int> learners_per_device;
  std::int64_t batch_size = 0;  // per learner
  int max_epochs = 0;
  std::optional<double> target_accuracy;
  std::int64_t dropped_examples = 0;  // of every epoch: the last partial mini-batch
  std::vector<std::string> warnings;
  std::string output_directory;
};

// Where the run stands, at most a few times a second.
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
  double images_per_second = 0.0;  // training examples / seconds of training, evaluation not counted
  double elapsed_seconds = 0.0;
  double learning_rate = 0.0;
  std::vector<int> learners_per_device;
  double replica_distance = 0.0;  // sqrt(mean over learners of |w_j - z|^2) at the last averaging
};

enum class RunStatus { kTargetReached, kCompleted, kStopped, kDiverged, kFailed };

struct RunSummary {
  std::string job;
  RunStatus status = RunStatus::kFailed;
  std::string message;         // why, unless completed or target reached; "" otherwise
  double test_accuracy = 0.0;  // of the saved model
  double best_test_accuracy = 0.0;
  double test_loss = 0.0;
  int epochs = 0;              // completed
  double train_seconds = 0.0;  // the whole clock: preparation, reading, training, evaluation
  std::optional<double> time_to_accuracy_seconds;
  double images_per_second = 0.0;  // training examples / seconds of training
  int learners = 0;
  std::vector<int> learners_per_device;
  std::vector<std::string> devices;
  std::uint64_t seed = 0;
  std::string model_sha256;  // of model.safetensors
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_start(const RunStart& start) = 0;
  virtual void on_progress(const RunProgress& progress) = 0;
  virtual void on_epoch(const EpochRow& row) = 0;
  virtual void on_finish(const RunSummary& summary) = 0;
};

}  // namespace arbalest::jobs
