// Whole jobs in TF32 and BF16, and their saved models. Runs on the CPU and on the stand-in of CUDA's libraries.
#include <cmath>

#include "engine/backends/devices.h"
#include "learners/step_trial.h"
#include "options/loading/load_job.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_device.h"
#include "train/session/precision_trial.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {
namespace {

using engine::Precision;

constexpr const char* kDevice = ARBALEST_TEST_DEVICE;

jobs::JobOptions small_job(Precision precision, int learners) {
  const std::string text = R"(name: "small" model {
    layers { name: "conv" input: "image" conv { filters: 4 kernel: 5 stride: 3 } }
    layers { name: "relu" input: "conv" relu {} }
    layers { name: "logits" input: "relu" dense { units: 10 } }
    layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} } }
    data { digits {} } learning_rate { base: 0.02 } optimizer { sgd { momentum: 0.9 } } devices: ")" +
                           std::string(kDevice) + R"(" training { batch_size: 100 max_epochs: 1 }
    learners { per_device { fixed: )" +
                           std::to_string(learners) + " } }";
  jobs::JobOptions job = jobs::parse_job(jobs::SourceText("test", text));
  job.training.precision = precision;  // a job file is refused on a CPU without the instructions
  return job;
}

}  // namespace

TEST_CASE("a job in each precision trains, is saved in float32, and evaluates to the same result", "[training]") {
  const auto precision = GENERATE(from_range(precisions_beside_float32(kDevice)));
  const int learners = GENERATE(1, 3);
  CAPTURE(to_string(precision), learners);
  use_device_with_bfloat16(kDevice);
  const TemporaryDirectory directory;
  const jobs::JobOptions job = small_job(precision, learners);
  jobs::RunContext context;
  context.output_directory = directory.path().string();
  const jobs::RunSummary summary = jobs::train(job, context);
  CHECK(summary.precision == precision);
  CHECK(summary.test.value("accuracy").value() > 0.7);
  const std::string model = (directory.path() / "model.safetensors").string();
  const jobs::EvaluationResult again = jobs::evaluate_run(job, model, summary.model_sha256, {});
  CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
  CHECK(again.scores.loss() == summary.test.value("loss"));

  // The result in FP32 differs only by the rounding in each layer.
  jobs::JobOptions exact = job;
  exact.training.precision = Precision::kFloat32;
  const jobs::EvaluationResult in_float32 = jobs::evaluate_run(exact, model, summary.model_sha256, {});
  CHECK(in_float32.scores.loss() != again.scores.loss());
  CHECK(std::abs(in_float32.scores.loss() - again.scores.loss()) < 0.02 * again.scores.loss());
}

TEST_CASE("a precision that makes steps slower is warned of", "[training]") {
  const auto warning = [](double float32, double precision) {
    return jobs::slow_precision_warning(Precision::kBFloat16, "cpu", {.float32 = float32, .precision = precision});
  };
  CHECK_FALSE(warning(2e-3, 1e-3).has_value());
  CHECK_FALSE(warning(2e-3, 2.1e-3).has_value());  // noise
  REQUIRE(warning(2e-3, 3e-3).has_value());
  CHECK(*warning(2e-3, 3e-3) ==
        "precision BF16 is slower than FP32 here: on cpu a step of one mini-batch takes 3 ms, and 2 ms in FP32; leave "
        "training.precision out, or set kernels: FIXED to train without this trial");
}

TEST_CASE("a trial times the steps of a team in a precision, and frees its memory", "[training]") {
  const auto precision = GENERATE(from_range(precisions_beside_float32(kDevice)));
  CAPTURE(to_string(precision));
  use_device_with_bfloat16(kDevice);
  const jobs::JobOptions job = small_job(precision, 2);
  std::vector<std::unique_ptr<engine::Device>> devices;
  devices.push_back(engine::open_device(job.devices[0]));
  const auto pools = jobs::make_pools(job, devices, {});
  CHECK(learners::time_step(*pools.front()) > 0.0);
  if (!devices[0]->is_cuda()) return;
  const std::size_t free_memory = devices[0]->free_memory();  // the libraries' handles stay
  learners::time_step(*pools.front());
  CHECK(devices[0]->free_memory() == free_memory);
}

TEST_CASE("jobs in FP32 and jobs that measure nothing try no precision", "[training]") {
  use_device_with_bfloat16(kDevice);
  CHECK_FALSE(jobs::try_precision(small_job(Precision::kFloat32, 1), {}).warning.has_value());
  jobs::JobOptions fixed = small_job(Precision::kBFloat16, 1);
  fixed.training.kernels = engine::KernelSelection::kFixed;
  fixed.training.batch_size = 0;  // a trial would fail
  CHECK_FALSE(jobs::try_precision(fixed, {}).warning.has_value());
}

}  // namespace arbalest::tests
