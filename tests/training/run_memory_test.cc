// Estimates of a job's memory and disk space, made before either is used.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dataflow/parameter_rules.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/memory_limit.h"
#include "tests/training/whole_run.h"
#include "train/inspection.h"
#include "train/live/output_space.h"
#include "train/session/memory_estimate.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {
namespace {

// Physical memory of this process.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("a job that does not fit in memory is refused before it allocates any", "[training][memory]") {
  const jobs::JobOptions job = wide_job(20'000, 4);
  const jobs::Inspection inspection = jobs::inspect(job);
  const std::int64_t needed = inspection.memory.front().needed;
  const std::int64_t before = resident_bytes();
  const AddressSpaceLimit limit(needed - inspection.learner_bytes / 4);
  try {
    jobs::train(job, {});
    FAIL("it fits");
  } catch (const jobs::DoesNotFit& error) {
    CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
    CHECK(error.learners_that_fit() == 3);
    CHECK_THAT(error.what(), ContainsSubstring("4 learners would take ") && ContainsSubstring(" of host memory (") &&
                                 ContainsSubstring(" are available; 3 learners on each device would fit"));
  }
  CHECK(resident_bytes() - before < inspection.learner_bytes);
  REQUIRE(jobs::inspect(job).warnings.size() == 1);
  CHECK_THAT(jobs::inspect(job).warnings.front(), ContainsSubstring("the job does not fit: 4 learners would take"));
}

TEST_CASE("what waits for the slowest learner of async_sgd is named where memory is short", "[training][memory]") {
  const auto warning = [](std::optional<int> staleness) {
    jobs::JobOptions job = wide_job(20'000, 4);
    job.synchronization = sma::defaults_of(sma::Scheme::kAsyncSgd);
    job.synchronization.staleness = staleness;
    const AddressSpaceLimit limit(jobs::inspect(job).memory.front().needed / 2);
    const std::vector<std::string> warnings = jobs::inspect(job).warnings;
    REQUIRE_FALSE(warnings.empty());
    CHECK_THAT(warnings.back(), ContainsSubstring("would fit"));
    return warnings.back();
  };
  CHECK_THAT(warning(16), ContainsSubstring(", or lower staleness or push_every of async_sgd"));
  CHECK_THAT(warning(0), !ContainsSubstring("async_sgd"));
  CHECK_THAT(warning(std::nullopt), !ContainsSubstring("async_sgd"));
}

TEST_CASE("an evaluation takes memory for the model, but none for gradients and the optimizer", "[training][memory]") {
  const jobs::JobOptions job = wide_job(20'000, 2);
  const TemporaryDirectory directory;
  std::vector<dataflow::NamedTensor> model;
  std::int64_t bytes = 0;
  for (const dataflow::NamedParameter& parameter : dataflow::named_parameters(*job.graph)) {
    const auto elements = static_cast<std::size_t>(parameter.spec.shape.elements());
    model.push_back({parameter.name, parameter.spec.shape, std::vector<float>(elements, 0.0F)});
    bytes += static_cast<std::int64_t>(elements * sizeof(float));
  }
  const std::string sha256 = jobs::write_safetensors(directory / "model.safetensors", model, {});
  model.clear();
  // The file's tensors, the weights, and as much again for data, mini-batches and the stacks of threads.
  const std::int64_t limit_bytes = 4 * bytes;
  CHECK(jobs::inspect(wide_job(20'000, 1)).memory.front().needed > limit_bytes);  // what one learner takes
  const AddressSpaceLimit limit(limit_bytes);
  const jobs::EvaluationResult result = jobs::evaluate_run(job, (directory / "model.safetensors").string(), sha256, {});
  CHECK(result.scores.loss() == Approx(std::log(10.0)));
}

TEST_CASE("old and new learners must fit in memory together when their thread count changes", "[training][memory]") {
  if (engine::host::allowed_cores().size() < 2) skip_test("one core: the threads of a learner never change");
  const jobs::Inspection inspection = jobs::inspect(wide_job(20'000, 2));
  const AddressSpaceLimit limit(inspection.memory.front().needed + inspection.learner_bytes / 2);
  CHECK(jobs::inspect(wide_job(20'000, 2)).warnings.empty());
  jobs::JobOptions switching = wide_job(20'000, 2);
  jobs::SynchronizationSwitch to_one;
  to_one.at_epoch = 0.5;
  to_one.to = switching.synchronization;
  to_one.learners_per_device = {1};
  switching.switches.push_back(to_one);
  for (const jobs::JobOptions& job :
       {switching, wide_job(20'000, "schedule { step { learners: 2 } step { at_batch: 4 learners: 1 } }")}) {
    const std::vector<std::string> warnings = jobs::inspect(job).warnings;
    REQUIRE_FALSE(warnings.empty());
    CHECK_THAT(warnings.back(),
               ContainsSubstring("3 learners (while their number changes, old and new learners coexist) would"));
  }
}

TEST_CASE("a tuned job whose minimum number of learners does not fit is refused", "[training][memory]") {
  const jobs::Inspection inspection = jobs::inspect(wide_job(20'000, 4));
  jobs::JobOptions job = wide_job(20'000, "auto { min: 4 max: 8 }");
  const AddressSpaceLimit limit(inspection.memory.front().needed - inspection.learner_bytes / 4);
  CHECK_THROWS_WITH(jobs::open_session(job, "", {}),
                    ContainsSubstring("3 learners on each device would fit (learners.per_device.auto.min)"));
  CHECK(job.tuned->max == 8);
}

TEST_CASE("a default number of learners is lowered to what fits in memory", "[training][memory]") {
  if (kSanitized) skip_test("a sanitizer's own memory counts towards the limit");
  jobs::JobOptions job = wide_job(20'000, 4);
  job.learners_are_given = false;
  const jobs::Inspection inspection = jobs::inspect(job);
  CHECK(inspection.warnings.empty());
  const AddressSpaceLimit limit(inspection.memory.front().needed - inspection.learner_bytes / 8);
  const auto session = jobs::open_session(job, "", {});
  CHECK(job.learners_per_device == std::vector<int>{3});
  REQUIRE_FALSE(job.warnings.empty());
  CHECK_THAT(job.warnings.front(), ContainsSubstring("3 learners on each device instead of 4: 4 learners would take"));
}

TEST_CASE("the estimate counts a checkpoint's copy of the state", "[training][memory]") {
  const auto needed = [](const jobs::JobOptions& job) { return jobs::inspect(job).memory.front().needed; };
  const jobs::JobOptions job = wide_job(20'000, 3);
  jobs::JobOptions saving = job;
  saving.checkpoint.keep_last = 1;
  // Six vectors of the scheme at most, and the weights and momenta of three learners.
  const std::int64_t model = jobs::model_bytes(*job.graph);
  CHECK(needed(saving) - needed(job) == (6 + 3 * 1) * model);
  saving.optimizer.rule = engine::AdamW{};
  jobs::JobOptions adam = job;
  adam.optimizer.rule = engine::AdamW{};
  CHECK(needed(saving) - needed(adam) == (6 + 3 * 3) * model);
}

// Two jobs in which weights take most of the memory, and one in which activations do.
TEST_CASE("the memory estimate agrees with what a session takes", "[training][memory]") {
  std::vector<jobs::JobOptions> all{wide_job(20'000, 1), wide_job(20'000, 2)};
  all.push_back(load("lenet-digits.txtpb", {"model={zoo{resnet_cifar{depth: 56}}}", "training.batch_size=64",
                                            "learners.per_device.fixed=1", "devices=cpu", "checkpoint.keep_last=0"}));
  for (jobs::JobOptions& job : all) {
    const jobs::Inspection inspection = jobs::inspect(job);
    const std::int64_t needed = inspection.memory.front().needed;
    const std::int64_t model = jobs::model_bytes(*job.graph);  // its copy on the host has been freed
    const std::int64_t before = resident_bytes();
    const auto session = jobs::open_session(job, "", {});
    session->scheduler().advance(session->training_ring(), 1);
    session->scheduler().drain();
    const auto taken = static_cast<double>(resident_bytes() - before);
    CAPTURE(job.name, taken, needed, inspection.arena_bytes);
    if (!kSanitized) CHECK(taken < 1.1 * static_cast<double>(needed));
    CHECK(taken > 0.9 * static_cast<double>(needed - model));
  }
}

TEST_CASE("a model that does not fit on the disk is not trained", "[training]") {
  const TemporaryDirectory directory;
  constexpr std::int64_t kLayerBytes = std::int64_t{4} << 30U;  // limit of a layer
  const auto free_bytes = static_cast<std::int64_t>(std::filesystem::space(directory.path()).available);
  std::string layers = "layers { name: 'd0' input: 'image' dense { units: 32768 } }\n";
  std::string input = "d0";
  for (std::int64_t layer = 0; layer <= free_bytes / kLayerBytes; ++layer) {
    const std::string name = "w" + std::to_string(layer);
    layers += "layers { name: '" + name + "' input: '" + input + "' dense { units: 32768 } }\n";
    input = name;
  }
  const jobs::JobOptions job =
      parse("name: 'huge' model {\n" + layers + "layers { name: 'logits' input: '" + input +
            "' dense { units: 10 } } layers { name: 'loss' input: ['logits', 'label'] softmax_cross_entropy {} } }\n"
            "data { digits {} } training { batch_size: 16 max_epochs: 1 } learning_rate { base: 0.01 }\n"
            "learners { per_device { fixed: 1 } }");
  CHECK_THROWS_WITH(run(job, directory.path().string()),
                    ContainsSubstring("the disk of '" + directory.path().string() + "' has ") &&
                        ContainsSubstring("1.00 MiB are kept for metrics"));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("an inspection's totals agree with its parts", "[training]") {
  const jobs::Inspection inspection = jobs::inspect(load("lenet-digits.txtpb", {"training.batch_size=1"}));
  CHECK(inspection.parameters == 431'080);
  std::int64_t parameters = 0;
  std::int64_t flops = 0;
  for (const jobs::LayerRow& row : inspection.layers) {
    parameters += row.parameters;
    flops += row.forward_flops;
  }
  CHECK(parameters == inspection.parameters);
  CHECK(flops == inspection.forward_flops);
  // 13.2 MFLOP per image, for the forward pass and both gradients of each layer. The first layer has no input gradient.
  CHECK(inspection.training_flops == Approx(13.2e6).epsilon(0.02));
  CHECK(inspection.weight_bytes >= 4 * 431'080);
  CHECK(inspection.arena_bytes_without_reuse > 0);
  CHECK(inspection.learners_that_fit > 10);
  CHECK(inspection.learners_that_fit <= 1024);
  CHECK(inspection.dataset_bytes == 25'000 * (28 * 28 + 4));
  CHECK(inspection.warnings.empty());
  // On the CPU, host memory has everything: the datasets, the model's copies, the rings, and the learners.
  REQUIRE(inspection.memory.size() == 1);
  const std::int64_t learners = inspection.learners_per_device.front();
  CHECK(inspection.memory.front().needed == inspection.device_bytes + learners * inspection.learner_bytes);
  CHECK(inspection.device_bytes > inspection.dataset_bytes + 4 * inspection.weight_bytes);
  // A learner has its optimizer's vectors: one for momentum, none for plain SGD, two for AdamW.
  const auto learner_bytes = [](const std::string& optimizer) {
    return jobs::inspect(load("lenet-digits.txtpb", {"training.batch_size=1", "optimizer=" + optimizer})).learner_bytes;
  };
  CHECK(learner_bytes("{ sgd {} }") == inspection.learner_bytes - inspection.weight_bytes);
  CHECK(learner_bytes("{ rmsprop {} }") == inspection.learner_bytes);
  CHECK(learner_bytes("{ adamw {} }") == inspection.learner_bytes + inspection.weight_bytes);
}

}  // namespace arbalest::tests
