// Whole jobs in TF32 and BF16 where no GPU is needed: what is saved, what is forecast, and that the libraries were
// asked for what the job says.
#include "engine/precision.h"

#include "jobs/options/load_job.h"
#include "jobs/run/evaluation.h"
#include "jobs/run/inspection.h"
#include "jobs/run/trainer.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {
namespace {

using engine::Precision;

jobs::JobOptions small_job(const std::string& precision, int learners) {
  const std::string text = R"(name: "small" model {
    layers { name: "conv" input: "image" conv { filters: 4 kernel: 5 stride: 3 } }
    layers { name: "relu" input: "conv" relu {} }
    layers { name: "logits" input: "relu" dense { units: 10 } }
    layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} } }
    data { digits {} } learning_rate { base: 0.02 } optimizer { sgd { momentum: 0.9 } } devices: "cuda:0"
    training { batch_size: 100 max_epochs: 1 precision: )" +
                           precision + " } learners { per_device { fixed: " + std::to_string(learners) + " } }";
  return jobs::parse_job(jobs::SourceText("test", text));
}

}  // namespace

TEST_CASE("a job in each precision trains, is saved in float32, and evaluates to the last digit", "[training]") {
  const auto [precision, learners] = GENERATE(table<std::string, int>({{"TF32", 1}, {"BF16", 1}, {"BF16", 3}}));
  CAPTURE(precision, learners);
  cuda_stand_in::reset();
  const TemporaryDirectory directory;
  const jobs::JobOptions job = small_job(precision, learners);
  jobs::RunContext context;
  context.output_directory = directory.path().string();
  const jobs::RunSummary summary = jobs::train(job, context);
  CHECK(to_string(summary.precision) == precision);
  CHECK(summary.test_accuracy.value() > 0.7);
  const std::string model = (directory.path() / "model.safetensors").string();
  const jobs::EvaluationResult again = jobs::evaluate_run(job, model, summary.model_sha256, {});
  CHECK(again.test_accuracy == summary.test_accuracy);
  CHECK(again.test_loss == summary.test_loss);

  // Read as FP32 it is the same model, but for the rounding of each layer.
  jobs::JobOptions exact = job;
  exact.training.precision = Precision::kFloat32;
  const jobs::EvaluationResult in_float32 = jobs::evaluate_run(exact, model, summary.model_sha256, {});
  CHECK(in_float32.test_loss != again.test_loss);
  CHECK(std::abs(in_float32.test_loss - again.test_loss) < 0.02 * again.test_loss);
  cuda_stand_in::require_clean();
}

TEST_CASE("the forecast counts the low-precision copies", "[training]") {
  cuda_stand_in::reset();
  const jobs::Inspection exact = jobs::inspect(small_job("FP32", 1));
  const jobs::Inspection halves = jobs::inspect(small_job("BF16", 1));
  CHECK(halves.precision == Precision::kBFloat16);
  CHECK(halves.weight_bytes == exact.weight_bytes);
  const std::int64_t copy = exact.weight_bytes / 2;
  CHECK(halves.device_bytes - exact.device_bytes == copy);
  CHECK(halves.learner_bytes - halves.arena_bytes >= exact.learner_bytes - exact.arena_bytes);
  cuda_stand_in::require_clean();
}

TEST_CASE("what a learner takes of a GPU in BF16 is what was forecast", "[training]") {
  cuda_stand_in::reset();
  const jobs::JobOptions job = small_job("BF16", 1);
  const auto device = engine::open_device(job.devices[0]);
  learners::LearnerPool pool(*job.graph, *device,
                             {.batch = 100, .evaluation_batch = 100, .precision = Precision::kBFloat16}, 2);
  const std::size_t before = device->free_memory();
  pool.create({nullptr, nullptr});
  CHECK(before - device->free_memory() == pool.shared_bytes() + 2 * pool.learner_bytes());
}

}  // namespace arbalest::tests
