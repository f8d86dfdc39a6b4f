#include "train/graph/graph_trainer.h"

#include <cmath>
#include <memory>
#include <utility>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/skip_limit.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "engine/host/topology.h"
#include "messages/text.h"
#include "scheduler/inference_devices.h"
#include "train/data/class_table.h"
#include "train/data/dataset_caching.h"
#include "train/data/dataset_loading.h"
#include "train/live/model_scores.h"
#include "train/weights/saved_description.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

namespace {

using learners::InferenceRunner;

void check(const JobOptions& job, const EvaluationOptions& options) {
  if (options.set == EvaluationSet::kValidation && !job.data.has_validation()) {
    engine::fail(
        engine::ErrorKind::kUsage,
        "the job '{}' has no validation set (data.validation) and names no files of one; evaluate it on the test set",
        job.name);
  }
  if (options.per_class && job.data.input.predicts_numbers()) {
    engine::fail(engine::ErrorKind::kUsage, "the job '{}' predicts numbers and has no classes", job.name);
  }
}

std::unique_ptr<dataflow::Dataset> load_set(const DataOptions& data, const RunContext& context, EvaluationSet set,
                                            engine::host::Pool& pool, std::vector<std::string>& warnings) {
  if (set == EvaluationSet::kValidation) return load_validation_set(data, context.data_root, pool, warnings);
  // Each image is read once, so none is kept decoded.
  return load_dataset(data, context.data_root, dataflow::Split::kTest, pool, warnings, Decoding::kOnReading);
}

// Adds up the results of mini-batches, as the scheduler does.
class Sums {
 public:
  // `classes`: also counts predictions by class; null: no.
  explicit Sums(ClassScores* classes) : classes_(classes) {}

  void add(const dataflow::Batch& batch, const InferenceRunner::Result& result) {
    evaluation_.examples += batch.examples;
    evaluation_.sums.add(result.step);
    if (classes_ != nullptr) classes_->add(result.output, batch.tensors.back().as<const std::int32_t>());
  }

  const scheduler::Evaluation& evaluation() const {
    if (evaluation_.examples == 0) {
      engine::fail(engine::ErrorKind::kData,
                   "no example of the evaluated set can be read; `arbalest data verify` lists the damaged examples and "
                   "the reasons");
    }
    return evaluation_;
  }

 private:
  ClassScores* classes_;
  scheduler::Evaluation evaluation_;
};

// Evaluates the model on `data`, and completes the result's warnings and, if it has them, its classes.
scheduler::Evaluation evaluate(const JobOptions& job, std::span<const dataflow::NamedTensor> model,
                               const std::string& model_path, const dataflow::Dataset& data, const RunContext& context,
                               engine::host::Pool& pool, EvaluationResult& result) {
  constexpr int kAhead = 2;  // mini-batches that are read ahead of each runner
  std::vector<std::unique_ptr<engine::Device>> devices;
  for (const engine::DeviceSpec& spec : job.devices) {
    devices.push_back(engine::open_device(spec, context.device_options));
  }
  const std::int64_t batch_size = evaluation_batch_size(job);
  scheduler::InferenceDevices inference(*job.graph, devices, job.learners_per_device,
                                        {.batch = batch_size,
                                         .precision = job.training.precision,
                                         .output = result.classes ? output_layer(*job.graph) : "",
                                         .training_batch = job.training.batch_size});
  try {
    inference.load(model);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}' does not fit the run's job: {}", model_path, error.what()));
  }
  dataflow::SequentialOrder order(data.size(), batch_size);
  dataflow::BatchRing ring(data, order, *devices.front(), pool, inference.runners() * (1 + kAhead));
  Sums sums(result.classes ? &*result.classes : nullptr);
  inference.run(ring, [&](const dataflow::Batch& batch, const InferenceRunner::Result& of_batch) {
    sums.add(batch, of_batch);
    return true;
  });
  dataflow::check_skipped(data.name(), ring.skipped(), data.size(), job.data.skip_limit, ring.named_skipped());
  if (ring.skipped() > 0) {
    result.warnings.push_back(fmt::format("left out {} that could not be read; the first: {}",
                                          counted(ring.skipped(), "image"), ring.first_skipped()));
  }
  return sums.evaluation();
}

}  // namespace

EvaluationResult evaluate_graph(const JobOptions& job, const ModelFile& file, const RunContext& context,
                                const EvaluationOptions& options) {
  check(job, options);
  const std::vector<dataflow::NamedTensor> model = read_finite_model(file.path, file.sha256);
  SavedDescription saved = read_saved_description(job, file.path);
  engine::host::Pool pool(engine::host::usable_cores());
  EvaluationResult result;
  result.set = options.set;
  result.warnings = std::move(saved.warnings);
  if (job.data.kind == DataOptions::Kind::kImages || job.data.kind == DataOptions::Kind::kTfrecord) {
    std::string note = old_rules_note(saved.description.pixels, fmt::format("'{}'", file.path));
    if (!note.empty()) result.warnings.push_back(std::move(note));
  }
  const auto data = load_set(data_as_trained(job.data, saved.description), context, options.set, pool, result.warnings);
  check_class_order(job.data, context.data_root, saved.description, file.path, result.warnings);
  if (options.per_class) {
    result.classes.emplace(job.data.input.classes());
    result.class_names = saved.description.class_names;
  }
  const scheduler::Evaluation evaluation = evaluate(job, model, file.path, *data, context, pool, result);
  for (std::string& text : data->warnings()) result.warnings.push_back(std::move(text));
  if (!std::isfinite(evaluation.loss())) {
    engine::fail(engine::ErrorKind::kDiverged,
                 "'{}' is of no use: its loss on the {} set is {}, so what it predicts means nothing; the run that "
                 "saved it had diverged",
                 file.path, to_string(options.set), unsigned_nan(evaluation.loss()));
  }
  result.metrics = job.graph->metrics();
  result.scores = Scores(result.metrics, evaluation.sums, evaluation.examples);
  result.examples = evaluation.examples;
  return result;
}

}  // namespace arbalest::jobs
