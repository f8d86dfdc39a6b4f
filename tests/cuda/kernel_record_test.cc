// Runs record the kernels that their GPUs take, and later runs and other processes take them.
#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/kernel_choices_text.h"
#include "report/inspection/inspection_report.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/error_kind.h"
#include "tests/support/process_rig.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/inspection.h"
#include "train/processes/shared_kernels.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;
using engine::KernelChoice;
using engine::KernelSelection;

constexpr const char* kOwn = "own tiled product";
constexpr const char* kLibrary = "library";

// A dense layer without a bias, for which the rule prefers our own kernels. A library launches nothing but products.
jobs::JobOptions dense_job(const std::vector<std::string>& settings = {}, const std::string& devices = "\"cuda:0\"") {
  const std::string text = R"(name: "dense" model {
    layers { name: "logits" input: "image" dense { units: 10 use_bias: false } }
    layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} }
    layers { name: "accuracy" input: ["logits", "label"] accuracy {} } }
    data { digits {} } learning_rate { base: 0.02 } training { batch_size: 100 max_epochs: 2 }
    learners { per_device { fixed: 1 } } devices: [)" +
                           devices + "]";
  return jobs::parse_job(jobs::SourceText("test", text), settings);
}

void make_libraries_faster() {
  cuda_stand_in::reset();
  cuda_stand_in::set_time("cublasGemmEx", 0.01);
}

void make_own_kernels_faster() { cuda_stand_in::reset(); }

bool has_timed() { return cuda_stand_in::calls("cudaEventCreate") > 0; }

std::vector<KernelChoice> kernels_in(const fs::path& run) {
  std::vector<KernelChoice> choices = jobs::read_kernel_choices(run / jobs::kKernelsFile);
  REQUIRE(choices.size() == 2);  // training and evaluation
  return choices;
}

void check_all(const fs::path& run, const std::string& answer) {
  for (const KernelChoice& choice : kernels_in(run)) CHECK(choice.answer == answer);
}

jobs::RunSummary train_with(const jobs::JobOptions& job, const std::vector<KernelChoice>& recorded) {
  const TemporaryDirectory output;
  jobs::RunContext context;
  context.output_directory = output.path().string();
  context.device_options.recorded_kernels = recorded;
  return jobs::train(job, context);
}

engine::OperatorSpec dense(const engine::Device& device) {
  return engine::DenseSpec{.input = device.plain_layout({32, 8}, engine::DType::kFloat32), .units = 6, .bias = false};
}

}  // namespace

TEST_CASE("a job times kernels unless it asks for the rule", "[training]") {
  make_libraries_faster();
  const TemporaryDirectory timed, fixed;
  train_part(dense_job({"training.max_epochs=1"}), timed.path());
  CHECK(has_timed());
  check_all(timed.path(), kLibrary);
  make_libraries_faster();
  train_part(dense_job({"training.max_epochs=1", "training.kernels=FIXED"}), fixed.path());
  CHECK_FALSE(has_timed());
  check_all(fixed.path(), kOwn);
  cuda_stand_in::require_clean();
}

TEST_CASE("a run does not time again what the trial of its precision has timed", "[training]") {
  const auto timed_events = [](const std::string& precision) {
    make_own_kernels_faster();
    train_with(dense_job({"training.precision=" + precision}), {});
    return cuda_stand_in::calls("cudaEventCreate");
  };
  const auto of_one_precision = timed_events("FP32");
  CHECK(of_one_precision > 0);
  CHECK(timed_events("TF32") == 2 * of_one_precision);  // the trial times FP32, too
}

TEST_CASE("a resumed run takes the kernels of its checkpoint, even if others are faster now", "[training]") {
  make_libraries_faster();
  const TemporaryDirectory output, whole;
  const jobs::JobOptions job = dense_job();
  const std::string expected = train_part(job, whole.path()).summary.model_sha256;
  make_libraries_faster();
  REQUIRE(train_part(job, output.path(), 20).summary.status == jobs::RunStatus::kStopped);
  const std::string before = read_text(output.path() / jobs::kKernelsFile);
  make_own_kernels_faster();
  const Part second = train_part(job, output.path());
  REQUIRE(second.resumed);
  CHECK_FALSE(has_timed());
  CHECK(read_text(output.path() / jobs::kKernelsFile) == before);
  check_all(output.path(), kLibrary);
  CHECK(second.summary.model_sha256 == expected);
}

TEST_CASE("a resumed run that asks for the rule takes the rule's kernels", "[training]") {
  make_libraries_faster();
  const TemporaryDirectory output;
  REQUIRE(train_part(dense_job(), output.path(), 20).summary.status == jobs::RunStatus::kStopped);
  check_all(output.path(), kLibrary);
  REQUIRE(train_part(dense_job({"training.kernels=FIXED"}), output.path()).resumed);
  check_all(output.path(), kOwn);
}

TEST_CASE("a repeated run with the kernels of the first ends with its bytes", "[training]") {
  make_libraries_faster();
  const TemporaryDirectory output;
  const std::string expected = train_part(dense_job(), output.path()).summary.model_sha256;
  const std::vector<KernelChoice> recorded = kernels_in(output.path());
  make_own_kernels_faster();
  CHECK(train_with(dense_job(), recorded).model_sha256 == expected);
  CHECK_FALSE(has_timed());
}

TEST_CASE("an evaluation with the kernels of the run has its loss", "[training]") {
  make_libraries_faster();
  const TemporaryDirectory output;
  const jobs::JobOptions job = dense_job({"training.max_epochs=1"});
  const jobs::RunSummary summary = train_part(job, output.path()).summary;
  make_own_kernels_faster();
  jobs::RunContext context;
  context.device_options.recorded_kernels = kernels_in(output.path());
  const std::uint64_t products = cuda_stand_in::calls("cublasGemmEx");
  const jobs::EvaluationResult again =
      jobs::evaluate_run(job, (output.path() / "model.safetensors").string(), summary.model_sha256, context);
  CHECK(again.scores.loss() == summary.test.value("loss"));
  CHECK(cuda_stand_in::calls("cublasGemmEx") > products);
}

TEST_CASE("kernels that this program does not have end a run before it begins", "[training]") {
  make_libraries_faster();
  const TemporaryDirectory output;
  train_part(dense_job({"training.max_epochs=1"}), output.path());
  std::vector<KernelChoice> recorded = kernels_in(output.path());
  recorded[0].answer = "kernels of the future";
  std::string message;
  try {
    train_with(dense_job(), recorded);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDevice);
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("kernels of the future") && ContainsSubstring("layer '"));
}

TEST_CASE("the file of kernels is read back as it was written, and nothing else is taken for one", "[training]") {
  const std::vector<KernelChoice> choices = {
      {.question = "a", .answer = kOwn, .candidates = {{kOwn, 1.25}, {kLibrary}}, .note = "a note"},
      {.question = "b", .answer = kLibrary}};
  const std::vector<KernelChoice> read =
      jobs::parse_kernel_choices(jobs::SourceText("choices", jobs::kernel_choices_text(choices)));
  REQUIRE(read.size() == 2);
  CHECK(read[0].candidates[0].microseconds == 1.25);
  CHECK_FALSE(read[0].candidates[1].microseconds);
  CHECK(read[0].candidates[1].name == kLibrary);
  CHECK(to_text(read[0]) == "a: own tiled product (own tiled product 1.2 us); a note");
  CHECK(to_text(read[1]) == "b: library");
  const TemporaryDirectory directory;
  CHECK(kind_of_failure([&] { jobs::read_kernel_choices(directory / "none"); }) == engine::ErrorKind::kUsage);
  write_text(directory / "other", "learning_rate { base: 1 }");
  std::string message;
  try {
    jobs::read_kernel_choices(directory / "other");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kUsage);
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("other:1:1: error:"));
}

TEST_CASE("inspection prints the times of kernels if it is asked for", "[training]") {
  make_libraries_faster();
  const jobs::Inspection fixed = jobs::inspect(dense_job());
  CHECK_FALSE(has_timed());
  REQUIRE(fixed.kernels.size() == 2);
  CHECK_THAT(fixed.kernels[0].choice.question, Catch::Matchers::EndsWith("training without input gradient, 1 replica"));
  CHECK(fixed.kernels[0].choice.answer == kOwn);
  const jobs::Inspection timed = jobs::inspect(dense_job(), KernelSelection::kTimed);
  CHECK(has_timed());
  REQUIRE(timed.kernels.size() == 2);
  CHECK(timed.kernels[0].device == "cuda:0");
  CHECK(timed.kernels[0].choice.answer == kLibrary);
  CHECK_THAT(jobs::to_text(timed),
             ContainsSubstring("Kernels, timed:\ncuda:0: dense layer of input 100x1x28x28, 10 units") &&
                 ContainsSubstring(": library (own tiled product ") && ContainsSubstring(" us, library "));
  const auto row = jobs::to_json(timed)["kernels"][0];
  CHECK(row["answer"] == kLibrary);
  REQUIRE(row["candidates"].size() == 2);
  CHECK(row["candidates"][0]["name"] == kOwn);
  CHECK(row["candidates"][0]["microseconds"] > row["candidates"][1]["microseconds"]);
}

TEST_CASE("other processes and other GPUs take the kernels that rank 0 has chosen", "[training]") {
  cuda_stand_in::reset({.devices = 2});
  cuda_stand_in::set_time("cublasGemmEx", 0.01);
  MemoryNetwork network(2);
  std::array<std::vector<KernelChoice>, 2> choices;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(static_cast<int>(rank));
      std::vector<std::unique_ptr<engine::Device>> devices;
      devices.push_back(engine::open_device(engine::parse_device("cuda:" + std::to_string(rank)),
                                            {.kernels = KernelSelection::kTimed}));
      if (rank == 0) {
        static_cast<void>(devices[0]->prepare(dense(*devices[0]), {}));
        cuda_stand_in::set_time("cublasGemmEx", 100.0);  // the second GPU would choose otherwise
      }
      jobs::share_kernel_choices(*world, devices);
      if (rank == 1) static_cast<void>(devices[0]->prepare(dense(*devices[0]), {}));
      choices[rank] = devices[0]->kernel_choices();
      world->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(choices[0].size() == 1);
  REQUIRE(choices[1].size() == 1);
  CHECK(choices[0][0].answer == kLibrary);
  CHECK(to_text(choices[1][0]) == to_text(choices[0][0]));
}

TEST_CASE("the GPUs of a job take the kernels of its first", "[training][several_gpus]") {
  cuda_stand_in::reset({.devices = 2});
  const jobs::Inspection two = jobs::inspect(dense_job({}, "\"cuda:0\", \"cuda:1\""), KernelSelection::kTimed);
  const std::uint64_t events = cuda_stand_in::calls("cudaEventCreate");
  REQUIRE(two.kernels.size() == 4);
  cuda_stand_in::reset({.devices = 2});
  static_cast<void>(jobs::inspect(dense_job(), KernelSelection::kTimed));
  CHECK(events == cuda_stand_in::calls("cudaEventCreate"));
}

TEST_CASE("the GPUs of a job in BF16 take the kernels of its first, whose order of weights they get",
          "[training][several_gpus]") {
  const auto inspect_on = [](const std::string& devices) {
    cuda_stand_in::reset({.devices = 2});
    const std::string text = R"(name: "small" model {
      layers { name: "first" input: "image" conv { filters: 16 kernel: 3 stride: 3 } }
      layers { name: "conv" input: "first" conv { filters: 16 kernel: 3 stride: 2 } }
      layers { name: "logits" input: "conv" dense { units: 10 } }
      layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} } }
      data { digits {} } learning_rate { base: 0.02 } training { batch_size: 4 max_epochs: 1 precision: BF16 }
      learners { per_device { fixed: 2 } } devices: [)" +
                             devices + "]";
    return jobs::inspect(jobs::parse_job(jobs::SourceText("test", text)), KernelSelection::kTimed);
  };
  const jobs::Inspection one = inspect_on("\"cuda:0\"");
  const std::uint64_t events = cuda_stand_in::calls("cudaEventCreate");
  CHECK(one.team == 2);  // the first layer, which reads float32, has kernels of ours, too
  const jobs::Inspection two = inspect_on("\"cuda:0\", \"cuda:1\"");
  CHECK(two.kernels.size() > one.kernels.size());
  CHECK(events == cuda_stand_in::calls("cudaEventCreate"));
}

}  // namespace arbalest::tests
