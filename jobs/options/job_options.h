// A launched job in plain values: what is left of a job file after it has been checked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/input/dataset.h"
#include "dataflow/input/encoded_images.h"
#include "dataflow/input/validation_split.h"
#include "dataflow/layer.h"
#include "engine/devices.h"
#include "engine/error.h"
#include "engine/precision.h"
#include "engine/update_rule.h"
#include "scheduler/learning_rate.h"
#include "scheduler/moving_average.h"
#include "sma/options.h"

namespace arbalest::jobs {

// Which training examples are left out for validation.
struct ValidationOptions {
  dataflow::ValidationRule rule;
  // Makes the error for a rule that does not suit the data. The error points at the rule in the job file or its --set.
  std::function<engine::Error(std::string message)> error;
};

struct DataOptions {
  // kIdx: MNIST and Fashion-MNIST. kNpy, kFloatNpy: arrays of bytes, of numbers
  enum class Kind { kDigits, kIdx, kCifar10, kCifar100, kImages, kTfrecord, kNpy, kFloatNpy, kRatings };
  Kind kind = Kind::kDigits;
  std::string directory;  // of the files, below the data root unless absolute; unused for digits
  dataflow::InputDescription input;
  dataflow::Normalization normalization;
  engine::Augmentation augmentation;  // of training images
  std::optional<ValidationOptions> validation;
  // That the dataset is known to have; the files may hold others. None: only they say.
  std::optional<std::int64_t> training_examples;    // without the validation examples
  std::optional<std::int64_t> validation_examples;  // 0 without `validation`
  std::optional<std::int64_t> test_examples;
  // Of files whose names the job says, below the directory: images, a pattern of shards, or ids.
  std::string train;
  std::string test;
  std::string train_labels;  // of arrays; of ratings, the targets
  std::string test_labels;
  // Of encoded images.
  std::int64_t first_label = 0;  // of shards: that of class 0
  std::optional<int> resize;
  std::optional<engine::RandomResizedCrop> random_crop;  // of training images, while they are decoded
  dataflow::OnUnreadable on_unreadable = dataflow::OnUnreadable::kStop;
};

struct TrainingOptions {
  std::int64_t batch_size = 32;  // examples of one mini-batch, per learner
  int max_epochs = 10;
  std::optional<double> target_accuracy;  // in (0, 1]
  std::uint64_t seed = 1;
  engine::Precision precision = engine::Precision::kFloat32;
  bool reestimates_statistics = true;  // of batch normalization, for the central model
  int statistics_examples = 2048;
  scheduler::MovingAverageOptions moving_average = {};
};

struct OptimizerOptions {
  engine::UpdateRule rule;
  std::optional<float> clip_gradient_norm;             // the largest norm that a learner's gradient keeps
  std::vector<dataflow::ParameterKind> without_decay;  // parameters that weight decay leaves alone
};

// What the auto-tuner compares numbers of learners by.
enum class TuningObjective { kThroughput, kGoodput };

// Learners of each device, both included.
struct LearnerBounds {
  int min = 1;
  int max = 1;
  TuningObjective objective = TuningObjective::kThroughput;
};

// From mini-batch `at_batch` of the run on or, where `at_epoch` is set, from the first round on that begins no earlier.
struct LearnerStep {
  std::uint64_t at_batch = 0;
  std::vector<int> per_device;
  std::optional<double> at_epoch = {};
};

// From `at_epoch` on learners are kept together by another scheme.
struct SynchronizationSwitch {
  double at_epoch = 0.0;
  sma::Options to;
  std::vector<int> learners_per_device;  // of each device; empty: as many as before
  scheduler::LearnerScaling with_learners = scheduler::LearnerScaling::kSqrt;
  std::string path;  // of the scheme in the job: "synchronization.switch[0].local_sgd"
};

struct JobOptions {
  std::string name;
  std::shared_ptr<const dataflow::Graph> graph;
  DataOptions data;
  TrainingOptions training;
  OptimizerOptions optimizer;
  scheduler::LearningRateSchedule learning_rate;
  sma::Options synchronization;
  std::string synchronization_path;             // of the scheme in the job: "synchronization.sma"
  std::vector<SynchronizationSwitch> switches;  // ascending
  bool reports_loss_gap = false;                // of the model to the learners, at each epoch's end
  std::vector<engine::DeviceSpec> devices;      // at least one
  std::vector<int> learners_per_device;         // of each device, at the start
  bool learners_are_given = false;              // by the user, rather than following from the devices
  std::optional<LearnerBounds> tuned;           // how many learners is found while training
  std::vector<LearnerStep> schedule;            // or follows this, the start included
  std::vector<std::string> warnings;            // to be shown to the user
  std::string resolved_text;  // the job with every --set and default written out, as text; reading it gives this job
};

}  // namespace arbalest::jobs
