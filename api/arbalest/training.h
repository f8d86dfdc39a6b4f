// Trains a job, as the command `arbalest train` does.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "arbalest/api.h"

namespace arbalest {

// The metrics of a model that have a value, by their names in metrics.jsonl: "train_loss", "test_accuracy" (a
// fraction), "validation_top5_accuracy", "test_rmse" and so on.
using Metrics = std::map<std::string, double>;

// Progress within an epoch.
struct Progress {
  double epoch = 0.0;  // examples seen / examples of one epoch
  int max_epochs = 0;
  double train_loss = 0.0;         // mean over the epoch so far
  double images_per_second = 0.0;  // over the epoch so far
  double elapsed_seconds = 0.0;
  double remaining_seconds = 0.0;  // estimate up to max_epochs
};

// An epoch that has ended. The test set is evaluated after each epoch, or the validation set if the job has one.
struct EpochResult {
  int epoch = 0;  // 1 after the first
  Metrics metrics{};
  double images_per_second = 0.0;  // in training
  double elapsed_seconds = 0.0;
  double learning_rate = 0.0;  // 0 under delayed_proximal, which has none
  std::vector<int> learners_per_device{};
};

enum class Next { kGoOn, kStop };

struct TrainingOptions {
  // The job: the path of a job file (*.txtpb), or its text. With a text, messages name it as `job_file`, or as "job".
  std::string job_file{};
  std::string job_text{};
  std::vector<std::string> settings{};  // replace fields of the job: "training.batch_size=16"
  std::string output{};                 // directory of the run; "": a new one below runs/
  // "none": `output` must hold no run. "auto": go on from the newest checkpoint in `output`, or begin if there is none.
  // Else the path of a checkpoint or run to go on from.
  std::string resume = "none";
  std::string data_root = "data";  // directory of the datasets

  // train() calls these functions on the thread that called it. kStop ends the run after the round under way: it saves
  // the model and a checkpoint. An exception does the same, and train() throws it when the run has ended.
  std::function<Next(const EpochResult&)> on_epoch{};
  std::function<Next(const Progress&)> on_progress{};  // at most a few times a second, after the first results
  std::function<void(const std::string&)> on_warning{};
  std::stop_token stop{};  // another thread may ask the run to stop
};

enum class TrainingStatus { kTargetReached, kCompleted, kStopped, kDiverged };

struct TrainingSummary {
  TrainingStatus status = TrainingStatus::kCompleted;
  std::string message{};    // why the run was stopped, diverged or had nothing left to train; else ""
  std::string directory{};  // of the run
  Metrics metrics{};        // of the saved model, on the test set and the validation set
  int epochs = 0;
  double train_seconds = 0.0;
  std::optional<double> time_to_accuracy_seconds{};  // none if the target was not reached
  double images_per_second = 0.0;
  std::vector<int> learners_per_device{};
  std::vector<std::string> devices{};
  std::string model_sha256{};  // of model.safetensors
};

// Trains until the target, the last epoch, a stop or divergence, and leaves the files of a run in its directory.
// Returns at once if a resumed run has nothing left to train: with the status, the message, the directory, the epochs,
// the hash, and the metrics. Throws Error.
ARBALEST_API TrainingSummary train(const TrainingOptions& options);

}  // namespace arbalest
