// Events of a run, for those who show or store them. Called on the Trainer's thread, between rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/decision.h"
#include "checkpoint/run_end.h"
#include "checkpoint/run_state.h"
#include "engine/base/precision.h"
#include "engine/kernel_choices.h"
#include "options/job_options.h"
#include "sma/staleness_clocks.h"
#include "train/context/accuracy_target.h"
#include "train/scores/scores.h"

namespace arbalest::jobs {

// A set of examples that a model is evaluated on.
enum class EvaluationSet {
  kTest,
  kValidation  // split off from the training set, or from files of its own
};

// "test", "validation"
const char* to_string(EvaluationSet set);

// The run goes on from a checkpoint.
struct ResumeRow {
  std::uint64_t batch = 0;
  double epoch = 0.0;
  double elapsed_seconds = 0.0;  // of the run up to the checkpoint
  std::string path;              // of the checkpoint
  std::vector<int> from;         // learners by device, in the checkpoint and from here on
  std::vector<int> to;
};

struct RunStart {
  std::string job;
  std::string model;         // one line: "8 layers, 431,080 parameters"
  std::string data;          // one line: "mnist: 60,000 training and 10,000 test examples"
  std::string classes = {};  // one line: which class has which folder and name (to_line); "": classes are just numbers
  std::string weights = {};  // one line about the saved weights that it starts from; "": none
  std::vector<std::string> devices = {};
  std::vector<int> learners_per_device;
  std::vector<LearnerStep> learner_steps = {};  // each number that the run has had until here
  int largest_team = 1;                         // Session::largest_team()
  int team = 0;                                 // size of teams, if it is tuned while training
  bool is_tuned = false;                        // whether the number of learners is tuned while training
  std::string learning_rate = {};  // how its schedule starts anew: "cosine, anew at epoch 10"; "": it does not
  std::string learners_change;     // how their number will change: "16 on each device from epoch 6 on"; "": it stays
  dataflow::Metrics metrics = {};  // of the model, the loss first
  std::int64_t batch_size = 0;     // per learner
  std::string scheme = {};         // of a sparse model: how learners work together; "": on mini-batches
  engine::Precision precision = engine::Precision::kFloat32;
  std::string precision_choice = {};               // what precision AUTO took, and why; "": the job names a precision
  std::vector<engine::KernelChoice> kernels = {};  // that the GPUs of the run take
  int max_epochs = 0;
  std::optional<double> target_accuracy;
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // set that target_accuracy refers to
  std::int64_t dropped_examples = 0;                  // per epoch: the last partial mini-batch
  double elapsed_seconds = 0.0;                       // since the clock started; reading data and preparing learners
  std::vector<std::string> warnings;
  std::string data_root = {};  // absolute path below which datasets were looked for
  std::string output_directory = {};
  std::string job_text;                   // JobOptions::resolved_text of the job
  std::optional<ResumeRow> resumed = {};  // set if the run goes on from a checkpoint
};

// Progress within an epoch. Reported at most a few times a second, and not before the first results.
struct RunProgress {
  double epoch = 0.0;  // examples seen / examples of one epoch
  int max_epochs = 0;
  double train_loss = 0.0;         // mean over the epoch so far
  double images_per_second = 0.0;  // over the epoch so far
  double elapsed_seconds = 0.0;
  double remaining_seconds = 0.0;  // estimate up to max_epochs
};

// Further results of an epoch that only sparse models have.
struct SparseProgress {
  double objective = 0.0;      // loss on the training set, with the penalty
  std::int64_t non_zeros = 0;  // weights that are not 0, without the bias
  // Set by delayed_proximal only: the number of coordinates that the KKT filter has not dropped, and the largest
  // violation of the conditions of a minimum that the epoch has met.
  std::optional<std::int64_t> active_coordinates = {};
  std::optional<double> kkt_violation = {};
  // Set by delayed_proximal only: the step of the epoch, as a part of the one that the curvature allows. Such an epoch
  // has no learning rate.
  std::optional<double> step = {};
};

// One epoch: a line of metrics.jsonl.
struct EpochRow {
  int epoch = 0;            // 1 after the first
  std::uint64_t batch = 0;  // mini-batches before this point
  // Over the epoch's mini-batches, augmented, each with the weights of its step.
  Scores train{};
  // Either the test set is evaluated after every epoch, or the validation set if there is one. The test set is then
  // evaluated once, at the end of the run (RunSummary).
  Scores test{};
  Scores validation{};
  double images_per_second = 0.0;  // training examples / seconds of training, evaluation not counted
  double elapsed_seconds = 0.0;
  double learning_rate = 0.0;
  std::vector<int> learners_per_device;
  int largest_team = 1;  // Session::largest_team()
  // sqrt(mean over learners of |w_j - z|^2) at the last averaging, and sqrt(mean over learners of |w_j - mean of w|^2).
  // None if nothing measures them: schemes without rounds average nothing, and a sparse model has no replicas.
  std::optional<double> replica_distance = {};
  std::optional<double> replica_spread = {};
  // Loss of the model minus the mean loss of the learners' own weights, on accuracy_set; if the job asks for it.
  std::optional<double> averaging_loss_gap = {};
  // Pushes (async_sgd) or steps (hogwild) of the epoch by staleness; empty: none were asynchronous.
  sma::StalenessCounts staleness = {};
  double training_seconds = 0.0;  // of this epoch, without its evaluation
  double evaluation_seconds = 0.0;
  double host_microseconds_per_step = 0.0;    // CPU time of the one host thread that enqueues, per mini-batch
  std::optional<SparseProgress> sparse = {};  // of a sparse model, which has no host thread

  // The scores on the set that the target accuracy refers to (RunStart::accuracy_set).
  const Scores& decisive() const noexcept { return validation.empty() ? test : validation; }
};

// The number of learners, or the size of their teams, has changed. If nothing changes(), the auto-tuner only explains
// why it keeps them.
struct ResizeRow {
  std::uint64_t batch = 0;  // mini-batches before this point
  double epoch = 0.0;       // the same in epochs
  double elapsed_seconds = 0.0;
  std::vector<int> from;  // learners by device
  std::vector<int> to;
  int from_team = 0;  // 0, like to_team: the size of teams is not tuned
  int to_team = 0;
  std::string reason;  // one sentence
  // Evidence for the auto-tuner's decision; none if a schedule is followed.
  std::optional<autotuner::Evidence> evidence;

  bool changes() const { return to != from || to_team != from_team; }
};

// Another scheme of synchronization is used from here on.
struct SwitchRow {
  std::uint64_t batch = 0;  // mini-batches before this point
  double epoch = 0.0;       // the same in epochs
  double elapsed_seconds = 0.0;
  std::string from;  // "s_sgd"
  std::string to;
  std::vector<int> learners_per_device;  // from here on
};

// The learning rate has dropped, because the score has stopped improving (learning_rate.plateau).
struct RateDropRow {
  std::uint64_t batch = 0;  // mini-batches before this point
  double epoch = 0.0;       // the same in epochs
  double elapsed_seconds = 0.0;
  double factor = 1.0;         // product of all drops
  double learning_rate = 0.0;  // from here on
  std::string reason;
};

// Training has diverged, and the run goes on from a checkpoint (training.on_divergence).
struct RollbackRow {
  std::uint64_t batch = 0;  // mini-batches enqueued when the divergence was found
  double epoch = 0.0;       // the same in epochs
  double elapsed_seconds = 0.0;
  std::optional<double> loss = {};  // the loss that shows it; none if something else does
  std::string reason;               // the error that the run would have ended with
  std::string checkpoint = {};      // path
  std::uint64_t to_batch = 0;       // position of the checkpoint
  double to_epoch = 0.0;
  double factor = 1.0;  // of the learning rate, for all roll-backs
  int rollbacks = 0;    // the number of roll-backs so far, and the most that there may be
  int most_rollbacks = 0;
  std::vector<int> learners_per_device = {};  // from here on
};

// A checkpoint was written.
struct CheckpointRow {
  std::uint64_t batch = 0;  // mini-batches before this point
  double epoch = 0.0;       // the same in epochs
  double elapsed_seconds = 0.0;
  std::string path;
};

enum class RunStatus { kTargetReached, kCompleted, kStopped, kDiverged, kFailed };

struct RunSummary {
  std::string job;
  RunStatus status = RunStatus::kFailed;
  std::string message;  // the reason, unless completed or target reached; "" otherwise
  int stop_signal = 0;  // the signal, if stopped
  dataflow::Metrics metrics = {};
  Scores test{};  // of the model at the end; empty if not measured
  // The best score (dataflow::score_of) at the end of an epoch. A model that a signal or training.max_minutes left
  // within an epoch does not count, because best.safetensors never holds it. None before the first epoch has ended, and
  // if there is a validation set: the test set is then evaluated at the end of the run only.
  std::optional<double> best_test{};
  EvaluationSet accuracy_set = EvaluationSet::kTest;  // set that time_to_accuracy_seconds refers to
  // These are the same scores on the validation set; there are none without such a set.
  Scores validation{};
  std::optional<double> best_validation{};
  int epochs = 0;                       // completed epochs
  std::uint64_t mini_batches = 0;       // mini-batches trained, of all learners together
  std::int64_t examples = 0;            // examples trained on
  std::int64_t skipped_examples = 0;    // failed reads of examples, in training and evaluation
  std::string first_skipped;            // error of the first one
  sma::StalenessCounts staleness = {};  // pushes of the whole run by staleness
  int unused_switches = 0;              // switches under whose scheme no round was trained, of a completed run
  double epochs_begun = 0.0;            // progress in epochs: 0.6
  double train_seconds = 0.0;           // the whole clock: preparation, reading, training, evaluation
  std::optional<double> time_to_accuracy_seconds;
  std::optional<HeldAccuracy> held_accuracy{};  // compared with the target; none before the first evaluation
  double images_per_second = 0.0;               // training examples / seconds of training
  int learners = 0;
  std::vector<int> learners_per_device;
  int largest_team = 1;  // Session::largest_team()
  std::vector<std::string> devices;
  engine::Precision precision = engine::Precision::kFloat32;
  std::uint64_t seed = 0;
  std::string model_sha256;                  // of model.safetensors
  std::optional<BestModel> best_model = {};  // best.safetensors; none: there is no such file
  ReachedLimits reached{};                   // that end a completed run
  bool is_sparse = false;                    // trained without mini-batches, so fields that count these have no meaning
  std::optional<SparseProgress> sparse = {};  // of a sparse model, after the last epoch
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Called first: data will be read or rendered and learners created, which may take seconds.
  virtual void on_prepare() {}
  virtual void on_start(const RunStart& start) = 0;
  virtual void on_progress(const RunProgress& progress) = 0;
  virtual void on_epoch(const EpochRow& row) = 0;
  virtual void on_resize(const ResizeRow& row) { static_cast<void>(row); }
  virtual void on_switch(const SwitchRow& row) { static_cast<void>(row); }
  virtual void on_rate_drop(const RateDropRow& row) { static_cast<void>(row); }
  virtual void on_rollback(const RollbackRow& row) { static_cast<void>(row); }
  virtual void on_checkpoint(const CheckpointRow& row) { static_cast<void>(row); }
  // Something went wrong that does not end the run.
  virtual void on_warning(const std::string& text) { static_cast<void>(text); }
  // The signal `signal` asks the run to stop. The run stops after the iteration under way (scheduler::Scheduler).
  virtual void on_stop(int signal) { static_cast<void>(signal); }
  // The run has ended, and model.safetensors is about to be replaced.
  virtual void on_save() {}
  virtual void on_finish(const RunSummary& summary) = 0;
};

}  // namespace arbalest::jobs
