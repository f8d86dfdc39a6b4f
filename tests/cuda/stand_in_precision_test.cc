// Memory of jobs in BF16 and its estimate.
#include <algorithm>

#include "engine/base/precision.h"
#include "learners/learner_pool.h"
#include "options/loading/load_job.h"
#include "report/inspection/inspection_report.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "train/inspection.h"

namespace arbalest::tests {
namespace {

using engine::Precision;

jobs::JobOptions small_job(const std::string& precision, int filters = 4) {
  const std::string text = R"(name: "small" model {
    layers { name: "conv" input: "image" conv { filters: )" +
                           std::to_string(filters) + R"( kernel: 5 stride: 3 } }
    layers { name: "relu" input: "conv" relu {} }
    layers { name: "logits" input: "relu" dense { units: 10 } }
    layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} } }
    data { digits {} } learning_rate { base: 0.02 } optimizer { sgd { momentum: 0.9 } } devices: "cuda:0"
    training { batch_size: 100 max_epochs: 1 precision: )" +
                           precision + " } learners { per_device { fixed: 1 } }";
  return jobs::parse_job(jobs::SourceText("test", text));
}

}  // namespace

TEST_CASE("the estimate includes the low-precision copies", "[training]") {
  cuda_stand_in::reset();
  const jobs::Inspection exact = jobs::inspect(small_job("FP32"));
  const jobs::Inspection halves = jobs::inspect(small_job("BF16"));
  CHECK(halves.precision == Precision::kBFloat16);
  CHECK(halves.weight_bytes == exact.weight_bytes);
  const std::int64_t copy = exact.weight_bytes / 2;
  CHECK(halves.device_bytes - exact.device_bytes == copy);
  CHECK(halves.learner_bytes - halves.arena_bytes >= exact.learner_bytes - exact.arena_bytes);
}

TEST_CASE("a learner in BF16 takes the GPU memory that was estimated", "[training]") {
  cuda_stand_in::reset();
  const jobs::JobOptions job = small_job("BF16");
  const auto device = engine::open_device(job.devices[0]);
  learners::LearnerPool pool(*job.graph, *device,
                             {.batch = 100, .evaluation_batch = 100, .precision = Precision::kBFloat16}, 2);
  const std::size_t before = device->free_memory();
  pool.create();
  constexpr std::size_t kGraphRoom = std::size_t{2} << 20U;  // the estimate's reserve for a learner's recordings
  const std::size_t estimate = pool.shared_bytes() + 2 * pool.learner_bytes();
  const std::size_t taken = before - device->free_memory();
  CHECK(taken <= estimate);
  CHECK(estimate - taken < 2 * kGraphRoom);
}

TEST_CASE("inspection lists the algorithms of convolutions", "[training]") {
  cuda_stand_in::reset();
  struct Case {
    std::string precision;
    std::string cores;
  };
  constexpr std::size_t kLines = 6;
  // Images have no gradient, and both batch sizes are equal, so cuDNN is asked for two passes. Training and inference
  // choose kernels for the convolution and for the dense layer.
  for (const Case& expected : {Case{"FP32", "no tensor cores"}, Case{"BF16", "tensor cores"}}) {
    const jobs::Inspection inspection = jobs::inspect(small_job(expected.precision, 80));  // too many for our rule
    REQUIRE(inspection.kernels.size() == kLines);
    const jobs::KernelRow& first = inspection.kernels[0];
    CHECK(first.device == "cuda:0");
    CHECK_THAT(first.choice.question, ContainsSubstring("input 100x1x28x28, 80 filters of 5x5"));
    CHECK_THAT(first.choice.answer, ContainsSubstring(expected.cores));
    const auto by_library = [](const jobs::KernelRow& row) { return row.choice.answer == "library"; };
    CHECK(std::ranges::count_if(inspection.kernels, by_library) == 2);
    CHECK_THAT(jobs::to_text(inspection), ContainsSubstring("Kernels, without --timings:\ncuda:0: input 100x1x28x28"));
    CHECK(jobs::to_json(inspection)["kernels"].size() == kLines);
  }
}

}  // namespace arbalest::tests
