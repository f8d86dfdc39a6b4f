// The options of a job: the values of a checked job file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/input/dataset.h"
#include "dataflow/input/derived/validation_split.h"
#include "dataflow/input/formats/split_files.h"
#include "dataflow/input/images/encoded_images.h"
#include "dataflow/input/images/stored_images.h"
#include "dataflow/layers/layer.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/base/precision.h"
#include "engine/base/update_rule.h"
#include "engine/kernel_choices.h"
#include "engine/process/world.h"
#include "options/parameters/initialize_options.h"
#include "options/sparse_options.h"
#include "scheduler/evaluation/moving_average.h"
#include "scheduler/replicas/learning_rate.h"
#include "sma/options.h"

namespace arbalest::jobs {

// The learners of all devices.
inline int total(std::span<const int> learners_per_device) {
  return std::accumulate(learners_per_device.begin(), learners_per_device.end(), 0);
}

// The split of the training set that sets examples aside for validation.
struct ValidationOptions {
  dataflow::ValidationRule rule;
  // Makes the error for a rule that does not fit the data; it points at the rule in the job file or its --set.
  std::function<engine::Error(std::string message)> error;
};

// Names of a split's files below the directory of the data.
struct DataFiles {
  std::string examples;     // images, a pattern of shards, or ids
  std::string labels = {};  // for arrays and IDX files; for ratings, the targets
};

// A format of examples that are floating-point numbers with a class. Both functions throw ErrorKind::kData, naming the
// file and the record or line.
struct NumbersFormat {
  // Reads a split. Also throws kOutOfMemory, before it allocates, for data beyond the budget.
  std::function<std::unique_ptr<dataflow::FloatImages>(const dataflow::SplitFiles& files)> load = {};
  // Returns the names of the classes, by class; none if classes are numbers. Empty: files of this format name no class.
  std::function<std::vector<std::string>(const std::filesystem::path& training)> class_names = {};
};

struct DataOptions {
  // kIdx: MNIST and Fashion-MNIST. kNpy: arrays of bytes. kNumbers: floating-point numbers in the format `numbers`.
  enum class Kind { kDigits, kIdx, kCifar10, kCifar100, kImages, kTfrecord, kNpy, kNumbers, kRatings, kLibsvm };
  Kind kind = Kind::kDigits;
  // Directory of the files, relative to the data root unless absolute; unused for digits.
  std::string directory;
  dataflow::InputDescription input;
  NumbersFormat numbers = {};                 // for kNumbers
  std::vector<std::string> class_names = {};  // by class; empty: the job names none, but the dataset's files may
  // Makes the error for class_names that do not fit the data; it points at them in the job file or its --set.
  std::function<engine::Error(std::string message)> class_names_error = {};
  dataflow::Normalization normalization;
  engine::Augmentation augmentation;  // for training images
  // At most one of the two is set: examples of the training set validate, or the validation set has files of its own.
  std::optional<ValidationOptions> validation;
  std::optional<DataFiles> validation_files = {};
  // Known sizes of the dataset, although its files may differ. None: only the files tell.
  std::optional<std::int64_t> training_examples;    // without the validation examples
  std::optional<std::int64_t> validation_examples;  // 0 without a validation set
  std::optional<std::int64_t> test_examples;
  // Names of files below the directory, for datasets that let the job name them: images, a pattern of shards, or ids.
  std::string train;
  std::string test;
  std::string train_labels;  // for arrays; for ratings, the targets
  std::string test_labels;
  // These are for encoded images.
  std::int64_t first_label = 0;  // for shards: label of class 0
  std::optional<int> resize;
  std::optional<engine::RandomResizedCrop> random_crop;  // for training images, applied while decoding
  dataflow::OnUnreadable on_unreadable = dataflow::OnUnreadable::kStop;
  dataflow::SkipLimit skip_limit = {};  // with OnUnreadable::kSkip
  // How image files are decoded, in training or by users of a model of any kind of images.
  dataflow::PixelRules pixels = {};

  bool has_validation() const noexcept { return validation || validation_files; }
};

// Training diverges if the loss, a gradient or a weight is not finite, or if the loss has a spike.
struct DivergenceOptions {
  bool rolls_back = false;       // goes back to the last checkpoint, with a lower learning rate; else the run stops
  double rollback_factor = 0.5;  // of the learning rate, at each roll-back
  double spike_factor = 3.0;     // scheduler::SpikeRule::factor; only if rolls_back
};

struct TrainingOptions {
  std::int64_t batch_size = 32;  // examples of one mini-batch, per learner
  int max_epochs = 10;
  std::optional<double> target_accuracy = {};  // in (0, 1]
  std::optional<int> patience_epochs = {};     // epochs without an improvement after which the run ends
  double min_improvement = 0.0;                // difference of the score that counts as one
  std::optional<double> max_minutes = {};      // of training
  std::uint64_t seed = 1;
  engine::Precision precision = engine::Precision::kFloat32;
  bool chooses_precision = false;  // AUTO: a new run settles the precision (train/session/settled_precision.h), which
                                   // is FP32 until then
  engine::KernelSelection kernels = engine::KernelSelection::kTimed;  // of GPUs
  bool reestimates_statistics = true;  // whether batch normalization's statistics are re-estimated for the central
                                       // model
  int statistics_examples = 2048;
  scheduler::MovingAverageOptions moving_average = {};
  DivergenceOptions divergence = {};
};

struct OptimizerOptions {
  engine::UpdateRule rule;
  std::optional<float> clip_gradient_norm;             // limit to which a learner's gradient is clipped
  std::vector<dataflow::ParameterKind> without_decay;  // parameters without weight decay
};

// The measure by which the auto-tuner compares numbers of learners.
enum class TuningObjective { kThroughput, kGoodput };

// Bounds of the number of learners per device; both are included.
struct LearnerBounds {
  int min = 1;
  int max = 1;
  bool max_is_given = false;  // by the job; otherwise it is a default, which data and schemes may lower
  TuningObjective objective = TuningObjective::kThroughput;
};

// A step of a schedule of learners: from mini-batch `at_batch` of the run on; or, if `at_epoch` is set, from the first
// round on that begins at or after that epoch.
struct LearnerStep {
  std::uint64_t at_batch = 0;
  std::vector<int> per_device;
  std::optional<double> at_epoch = {};
};

// Adds a step to those that a run has had: it replaces one at the same mini-batch, and is none if nothing changes.
inline void add_step(std::vector<LearnerStep>& steps, LearnerStep step) {
  if (!steps.empty() && steps.back().at_batch == step.at_batch) steps.pop_back();
  if (steps.empty() || steps.back().per_device != step.per_device) steps.push_back(std::move(step));
}

// From `at_epoch` on, another scheme keeps the learners together.
struct SynchronizationSwitch {
  double at_epoch = 0.0;
  sma::Options to;
  std::vector<int> learners_per_device;  // by device; empty: as many as before
  scheduler::RateScaling with_learners = scheduler::RateScaling::kSqrt;
  std::string path;  // path of the scheme in the job: "synchronization.switch[0].local_sgd"
  // Path of what makes the switch: "synchronization.switch[0]", or the field that sets the end of a warm start.
  std::string place;
  bool ends_warm_start = false;  // whether it is where the warm start of an asynchronous first scheme ends
};

// A run saves its state at intervals. One of the first three is set.
struct CheckpointOptions {
  std::optional<double> every_minutes;
  std::optional<int> every_epochs;
  std::optional<std::uint64_t> every_batches;
  int keep_last = 3;  // 0: no checkpoints
  int keep_best = 1;

  bool are_on() const noexcept { return keep_last > 0; }
};

// The processes of a run, if there are several.
struct ProcessOptions {
  double peer_timeout_seconds = 30.0;
  engine::process::AllReduceMethod all_reduce = engine::process::AllReduceMethod::kCanonical;
};

struct JobOptions {
  std::string name;
  std::shared_ptr<const dataflow::Graph> graph;  // null for sparse_logistic
  // Set for jobs without mini-batches and replicas. Of the other fields they have: name, training.max_epochs, .seed,
  // devices, learners_per_device, warnings, resolved_text; under hogwild on ratings also graph, data and optimizer.
  std::optional<SparseOptions> sparse = {};
  DataOptions data;
  TrainingOptions training;
  OptimizerOptions optimizer;
  scheduler::LearningRateSchedule learning_rate;
  std::optional<InitializeOptions> initialize = {};  // saved weights to start from
  sma::Options synchronization;
  std::string synchronization_path;             // path of the scheme in the job: "synchronization.sma"
  std::vector<SynchronizationSwitch> switches;  // ascending
  bool reports_loss_gap = false;  // whether the gap between the model's and the learners' loss is reported for each
                                  // epoch
  int compare_rounds = 500;       // rounds between two comparisons of the devices' copies of the model; 0: never
  std::vector<engine::DeviceSpec> devices;               // at least one
  std::optional<std::int64_t> device_memory_bytes = {};  // that the job may take of each device's memory
  std::vector<int> learners_per_device;                  // by device, at the start
  int team = 1;                                          // learners of a team on a GPU, at most (learners/team.h)
  bool chooses_team = false;   // whether learners of a GPU form one team if the model's layers compute for all at once
  bool tunes_team = false;     // whether the size of teams is tuned with the number of learners, `team` at the start
  int learners_elsewhere = 0;  // at most, of other processes of the run
  bool learners_are_given = false;     // whether the user set the number; else it follows from the devices
  std::optional<LearnerBounds> tuned;  // set if the number of learners is tuned while training
  std::vector<LearnerStep> schedule;   // or if it follows a schedule, which includes the start
  CheckpointOptions checkpoint;        // for runs with a directory
  ProcessOptions processes;
  std::vector<std::string> warnings;  // to show to the user
  // Why a new run must not begin: steps that grow twice with the learners (step_growth_check.h). A run of an earlier
  // version may go on.
  std::optional<engine::Error> growth_error = {};
  // Paths of the fields that the job leaves to defaults that follow from training.max_epochs: a run that goes on keeps
  // the values it began with (checkpoint/job/continuation.h).
  std::vector<std::string> following_max_epochs = {};
  // The job as text, with every --set and default written out. Reading it gives this job; of a run of several
  // processes, the job before its devices are divided, on rank 0.
  std::string resolved_text;
};

// Throws JobOptions::growth_error if there is one.
inline void require_stable_steps(const JobOptions& options) {
  if (options.growth_error) throw *options.growth_error;
}

}  // namespace arbalest::jobs
