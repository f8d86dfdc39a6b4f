// Whole runs of models that are split over two devices, through jobs::train.
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "report/inspection/inspection_report.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/inspection.h"
#include "train/session/memory_estimate.h"
#include "train/train.h"

namespace arbalest::tests {

using Catch::Matchers::StartsWith;

namespace {

// A dense layer with `units` units between the digits and their classes, split over two devices, or on one.
jobs::JobOptions split_job(int units, bool is_split, const std::vector<std::string>& settings = {}) {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("needs two cores");
  const std::string devices = fmt::format("devices: 'cpu:{}' devices: 'cpu:{}'", cores[0], cores[1]);
  const std::string text = fmt::format(
      "name: 'split' model {{ "
      "layers {{ name: 'hidden' input: 'image' dense {{ units: {0} {1} }} }} "
      "layers {{ name: 'relu' input: 'hidden' relu {{}} }} "
      "layers {{ name: 'drop' input: 'relu' dropout {{ ratio: 0.3 }} }} "
      "layers {{ name: 'logits' input: 'drop' dense {{ units: 10 {2} }} }} "
      "layers {{ name: 'loss' input: 'logits' input: 'label' softmax_cross_entropy {{}} }} }} "
      "data {{ digits {{}} }} training {{ batch_size: 32 max_epochs: 2 }} "
      "optimizer {{ sgd {{ momentum: 0.9 }} }} learning_rate {{ base: 0.02 with_learners: KEEP }} "
      "synchronization {{ s_sgd {{}} }} learners {{ per_device {{ fixed: 1 }} }} {3}",
      units, is_split ? "split: COLUMNS" : "", is_split ? "split: ROWS" : "", devices);
  return jobs::parse_job(jobs::SourceText("split.txtpb", text), settings);
}

}  // namespace

TEST_CASE("a split run learns, saves the whole model, and is evaluated on one device", "[split]") {
  const TemporaryDirectory split;
  const TemporaryDirectory whole;
  const jobs::JobOptions job = split_job(40, true);
  const jobs::RunSummary summary = run(job, split.path());
  const jobs::RunSummary expected = run(split_job(40, false), whole.path());
  CHECK(summary.test.value("accuracy").value() > 0.5);
  CHECK(summary.test.value("accuracy").value() == Approx(expected.test.value("accuracy").value()).margin(0.01));
  const auto file = jobs::read_safetensors(split.path() / jobs::kModelFile);
  const auto unsplit = jobs::read_safetensors(whole.path() / jobs::kModelFile);
  REQUIRE(file.size() == unsplit.size());
  for (std::size_t i = 0; i < file.size(); ++i) {
    CHECK(file[i].name == unsplit[i].name);
    CHECK(file[i].shape == unsplit[i].shape);
  }
  const std::string model = (split.path() / jobs::kModelFile).string();
  const jobs::EvaluationResult alone =
      jobs::evaluate_run(split_job(40, true, {"devices=[\"cpu\"]"}), model, summary.model_sha256, {});
  CHECK(alone.scores.value("accuracy").value() ==
        Approx(summary.test.value("accuracy").value()).margin(5e-4));  // sums in another order
}

TEST_CASE("a split run that stops goes on with the bytes of one that never stopped", "[split][checkpoint]") {
  const jobs::JobOptions job = split_job(16, true);
  const TemporaryDirectory whole;
  const TemporaryDirectory parts;
  const Part expected = train_part(job, whole.path());
  train_part(job, parts.path(), 30);
  const Part last = train_part(job, parts.path());
  REQUIRE(last.summary.status == jobs::RunStatus::kCompleted);
  CHECK(last.summary.model_sha256 == expected.summary.model_sha256);
}

TEST_CASE("a run that was split goes on with the whole layer on one device", "[split][checkpoint]") {
  const TemporaryDirectory parts;
  train_part(split_job(16, true), parts.path(), 30);
  const Part last = train_part(split_job(16, true, {"devices=[\"cpu\"]"}), parts.path());
  CHECK(last.summary.status == jobs::RunStatus::kCompleted);
  CHECK(last.summary.test.value("accuracy").value() > 0.4);
}

TEST_CASE("a layer that fits no device's memory trains over two", "[split][memory]") {
  // 784 x 4000 weights take 12 MiB. A device has eight vectors of that size: weights, gradient, momentum and those of
  // the model. It may also have the data, 20 MiB.
  const std::vector<std::string> limit = {"device_memory_mib=80", "training.max_epochs=1"};
  const jobs::JobOptions whole = split_job(4000, false, limit);
  try {
    run(whole);
    FAIL("it fits");
  } catch (const jobs::DoesNotFit& error) {
    CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
    CHECK_THAT(error.what(), StartsWith("1 learner would take ") && ContainsSubstring("' under device_memory_mib (") &&
                                 ContainsSubstring("raise device_memory_mib") && ContainsSubstring("`split`"));
  }
  try {
    run(split_job(4000, true, {"device_memory_mib=40"}));
    FAIL("it fits");
  } catch (const jobs::DoesNotFit& error) {
    CHECK_THAT(error.what(), StartsWith("1 learner would take ") && ContainsSubstring("raise device_memory_mib") &&
                                 ContainsSubstring("further dense layers") && ContainsSubstring("more devices") &&
                                 !ContainsSubstring("would fit"));
  }
  CHECK(run(split_job(4000, true, limit)).test.value("accuracy").value() > 0.4);
}

TEST_CASE("inspect counts whole split layers, and host memory to gather them", "[split][memory]") {
  const jobs::Inspection whole = jobs::inspect(split_job(4000, false, {"checkpoint={}"}));
  const jobs::Inspection split = jobs::inspect(split_job(4000, true, {"checkpoint={}"}));
  CHECK(split.parameters == whole.parameters);
  CHECK(split.learners_that_fit == 1);
  CHECK(whole.learners_that_fit > 1);
  CHECK_THAT(jobs::to_text(split), ContainsSubstring("1 (of a split model a device has one)"));
  CHECK(split.parameters > 784 * 4000);
  CHECK(split.weight_bytes < whole.weight_bytes);  // of one device
  // The learners' memory on the two devices is that of one, and host memory has the gathered layer besides.
  const std::int64_t layer = 784 * 4000 * std::int64_t{sizeof(float)};
  CHECK(split.memory.front().needed - 2 * split.learner_bytes - split.dataset_bytes > 5 * layer);
}

}  // namespace arbalest::tests
