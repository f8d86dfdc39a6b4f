#include "options/loading/job_reader.h"

#include <algorithm>

#include "dataflow/models/fields/field_ranges.h"
#include "messages/text.h"
#include "options/data/data_reader.h"
#include "options/data/known_datasets.h"
#include "options/data/validation_check.h"
#include "options/divergence/divergence_reader.h"
#include "options/parameters/initialize_reader.h"
#include "options/parameters/parameter_rules_reader.h"
#include "options/readers/checkpoint_reader.h"
#include "options/readers/devices_reader.h"
#include "options/readers/graph_reader.h"
#include "options/readers/learners_reader.h"
#include "options/readers/learning_rate_reader.h"
#include "options/readers/name_reader.h"
#include "options/readers/optimizer_reader.h"
#include "options/readers/processes_reader.h"
#include "options/readers/schedule_check.h"
#include "options/readers/team_check.h"
#include "options/split/split_check.h"
#include "options/synchronization/synchronization_reader.h"

namespace arbalest::jobs {

namespace {

constexpr double kMebibyte = 1 << 20;

std::string check_target(const v1::Training& training) {
  const std::string problem = dataflow::field_problem(training, "target_accuracy");
  return problem.empty() ? "" : problem + fraction_hint(training.target_accuracy());
}

class JobReader {
 public:
  JobReader(v1::Job& job, const RunShape& shape, dataflow::FieldIssues& issues)
      : job_(job), shape_(shape), issues_(issues) {}

  JobOptions read() {
    options_.name = read_name(job_, issues_);
    read_data();
    read_training();
    options_.optimizer = read_optimizer(job_.optimizer(), issues_);
    options_.learning_rate = read_learning_rate(job_.learning_rate(), job_.training(), issues_);
    options_.devices = read_devices(job_, issues_);
    read_device_memory();
    read_precision();
    const std::size_t issues_before = issues_.all().size();
    read_learners(*job_.mutable_learners(), options_, issues_);
    learners_are_sound_ = issues_.all().size() == issues_before && !options_.devices.empty();
    read_synchronization();
    options_.checkpoint = read_checkpoint(job_.checkpoint(), issues_);
    options_.processes = read_processes(job_.processes(), issues_);
    read_model();
    read_round();
    check_split(job_, options_, shape_, {synchronization_is_sound_, learners_are_sound_}, issues_);
    if (synchronization_is_sound_ && learners_are_sound_) check_team(options_, is_split(options_), issues_);
    if (issues_.empty()) add_warnings();
    return std::move(options_);
  }

 private:
  void read_data() {
    const v1::Data& data = job_.data();
    if (data.source_case() == v1::Data::SOURCE_NOT_SET) {
      issues_.add("data", "no data is chosen; add data { digits {} } (part of the program) or data { mnist {} }");
      return;
    }
    options_.data = jobs::read_data(data, issues_);
    const std::optional<std::int64_t> examples = options_.data.training_examples;
    if (examples && job_.training().batch_size() > *examples) {
      issues_.add("training.batch_size",
                  fmt::format("batch_size {} is larger than the training set of {} ({} examples{})",
                              job_.training().batch_size(), known_dataset(data).name, *examples,
                              options_.data.validation_examples.value_or(0) > 0 ? " without those that validate" : ""));
    }
  }

  void read_training() {
    const v1::Training& training = job_.training();
    const DivergenceOptions divergence = read_divergence(job_, issues_);
    issues_.add("training.target_accuracy", check_target(training));
    dataflow::check_fields(training, "training", issues_);
    options_.data.augmentation.seed = training.seed();
    options_.training = {.batch_size = training.batch_size(),
                         .max_epochs = training.max_epochs(),
                         .target_accuracy = std::nullopt,
                         .seed = training.seed(),
                         .precision = jobs::from_proto(training.precision()),
                         .chooses_precision = training.precision() == v1::Training::AUTO,
                         .kernels = training.kernels() == v1::Training::FIXED ? engine::KernelSelection::kFixed
                                                                              : engine::KernelSelection::kTimed,
                         .reestimates_statistics = training.batch_norm_statistics() == v1::Training::REESTIMATED,
                         .statistics_examples = training.batch_norm_examples(),
                         .moving_average = {.epochs = training.moving_average_epochs()},
                         .divergence = divergence};
    if (training.has_mean_from_epoch()) {
      const double most = training.max_epochs();
      issues_.add("training.mean_from_epoch",
                  out_of_range("mean_from_epoch", training.mean_from_epoch(), dataflow::below(0.0, most)));
      if (training.moving_average_epochs() > 0.0) {
        issues_.add("training.mean_from_epoch",
                    "mean_from_epoch and moving_average_epochs exclude each other; remove one of them");
      }
      options_.training.moving_average.mean_from_epoch = training.mean_from_epoch();
    }
    read_end(training);
    if (training.has_target_accuracy()) {
      options_.training.target_accuracy = training.target_accuracy();
      if (options_.data.kind == DataOptions::Kind::kRatings) {
        issues_.add("training.target_accuracy",
                    "target_accuracy is for classifiers, and ratings are numbers; remove it: the job trains for "
                    "max_epochs and reports test_rmse");
      }
    }
  }

  // Reads what ends the run before its last epoch.
  void read_end(const v1::Training& training) {
    if (training.has_patience_epochs()) options_.training.patience_epochs = training.patience_epochs();
    if (training.has_min_improvement()) {
      if (!training.has_patience_epochs()) {
        issues_.add("training.min_improvement", "min_improvement has no effect without patience_epochs; add that");
      }
      options_.training.min_improvement = training.min_improvement();
    }
    if (training.has_max_minutes()) options_.training.max_minutes = training.max_minutes();
  }

  void read_device_memory() {
    if (!job_.has_device_memory_mib()) return;
    issues_.add("device_memory_mib", dataflow::field_problem(job_, "device_memory_mib"));
    options_.device_memory_bytes = static_cast<std::int64_t>(job_.device_memory_mib() * kMebibyte);
  }

  void read_precision() {
    if (options_.training.chooses_precision && options_.training.kernels == engine::KernelSelection::kFixed) {
      issues_.add("training.precision",
                  "precision AUTO times training steps, and kernels FIXED times nothing; name a precision, such as "
                  "BF16, or leave kernels out");
    }
    for (const engine::DeviceSpec& device : options_.devices) {
      const std::string problem = engine::precision_problem(device, options_.training.precision);
      if (problem.empty()) continue;
      issues_.add("training.precision", problem);
      return;  // the devices are all of one kind
    }
  }

  void read_synchronization() {
    jobs::read_synchronization(job_.synchronization(), options_, issues_);
    synchronization_is_sound_ = !issues_.has_within("synchronization");
    // Stability depends on all parameters and on the number of learners.
    if (synchronization_is_sound_ && learners_are_sound_) check_stability(options_, issues_);
  }

  void read_model() {
    if (!job_.has_model()) {
      issues_.add("model", "no model is chosen; add one, as in model { zoo { lenet {} } }, or list its layers");
      return;
    }
    GraphContext context{.input = std::nullopt, .batch_size = std::nullopt};
    if (options_.data.input.is_known()) context.input = options_.data.input;
    if (!issues_.has("training.batch_size")) context.batch_size = options_.training.batch_size;
    options_.graph = read_parameter_rules(job_, read_graph(job_.model(), context, issues_), issues_);
    if (job_.has_initialize()) {
      options_.initialize = jobs::read_initialize(job_.initialize(), options_.graph.get(), issues_);
    }
  }

  void read_round() {
    // Consequences of another mistake are not reported.
    if (issues_.has("training.batch_size") || !synchronization_is_sound_ || !learners_are_sound_) return;
    std::optional<std::int64_t> batches;  // batches of an epoch, unless only the files tell
    if (options_.data.training_examples) batches = *options_.data.training_examples / options_.training.batch_size;
    if (!batches || *batches > 0) check_steps(options_, batches, issues_);
    if (batches) check_rounds(job_.learners(), *batches, options_, issues_);
  }

  void add_warnings() {
    const auto warn = [&](std::string text) {
      if (!text.empty()) options_.warnings.push_back(std::move(text));
    };
    warn(optimizer_warning(options_.optimizer));
    for (std::string& text : learning_rate_warnings(options_.learning_rate, options_.training.max_epochs)) {
      warn(std::move(text));
    }
    if (options_.data.training_examples) {
      const std::int64_t batches = *options_.data.training_examples / options_.training.batch_size;
      for (std::string& text : size_warnings(options_, batches)) warn(std::move(text));
    }
    if (options_.data.has_validation() && options_.data.validation_examples) {
      warn(validation_warning(options_.data, *options_.data.validation_examples, options_.training.target_accuracy));
    }
    warn(split_warning(options_, shape_));
    warn_of_softmax();
    if (options_.initialize) warn(initialize_warning(*options_.initialize, *options_.graph));
    for (std::size_t i = 0; i < options_.devices.size(); ++i) {
      const int cores = engine::core_count(options_.devices[i]);
      int most = options_.learners_per_device[i];
      for (const LearnerStep& step : options_.schedule) most = std::max(most, step.per_device[i]);
      if (!options_.devices[i].is_cuda() && most > cores) {
        warn(fmt::format("{} learners share the {} of '{}'", most, counted(cores, "core"), options_.devices[i].name));
      }
    }
  }

  void warn_of_softmax() {
    if (options_.graph == nullptr) return;
    const auto& nodes = options_.graph->nodes();
    for (const auto& loss : nodes) {
      if (loss.layer->kind() != "softmax_cross_entropy") continue;
      const auto before = std::ranges::find(nodes, loss.inputs[0], &dataflow::Graph::Node::output);
      if (before == nodes.end() || before->layer->kind() != "softmax") continue;
      options_.warnings.push_back(fmt::format(
          "the loss '{}' takes logits and applies softmax itself; remove layer '{}'", loss.name, before->name));
    }
  }

  v1::Job& job_;
  const RunShape shape_;
  dataflow::FieldIssues& issues_;
  JobOptions options_;
  bool learners_are_sound_ = false;        // whether the numbers of learners are right
  bool synchronization_is_sound_ = false;  // whether the synchronization is right
};

}  // namespace

JobOptions read_job(v1::Job& job, const RunShape& shape, dataflow::FieldIssues& issues) {
  return JobReader(job, shape, issues).read();
}

v1::Training::Precision to_proto(engine::Precision precision) {
  switch (precision) {
    case engine::Precision::kTensorFloat32: return v1::Training::TF32;
    case engine::Precision::kBFloat16: return v1::Training::BF16;
    case engine::Precision::kFloat32: break;
  }
  return v1::Training::FP32;
}

engine::Precision from_proto(v1::Training::Precision precision) {
  switch (precision) {
    case v1::Training::TF32: return engine::Precision::kTensorFloat32;
    case v1::Training::BF16: return engine::Precision::kBFloat16;
    default: return engine::Precision::kFloat32;
  }
}

}  // namespace arbalest::jobs
