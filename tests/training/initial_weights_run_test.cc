// Whole runs that start from saved weights.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <string>
#include <vector>

#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/evaluation.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/session/session.h"
#include "train/train.h"
#include "train/weights/initial_weights.h"

namespace arbalest::tests {

namespace {

const std::vector<std::string> kShort = {"devices=cpu", "learners.per_device.fixed=2", "training.max_epochs=1",
                                         "training.target_accuracy=1"};

jobs::JobOptions job_with(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), kShort.begin(), kShort.end());
  return load("convnet-digits.txtpb", overrides);
}

scheduler::Evaluation start_of(jobs::JobOptions job) {
  const auto session = jobs::open_session(job, "", {});
  jobs::load_initial_weights(jobs::read_initial_weights(*job.initialize, *job.graph), session->scheduler());
  return session->scheduler().evaluate(session->test_ring());
}

const dataflow::NamedTensor& find(const std::vector<dataflow::NamedTensor>& model, const std::string& name) {
  return *std::ranges::find(model, name, &dataflow::NamedTensor::name);
}

bool is_same(const dataflow::NamedTensor& a, const dataflow::NamedTensor& b) {
  return std::ranges::equal(a.values, b.values, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

}  // namespace

TEST_CASE("a run from saved weights starts with exactly the saved model, and keeps what is frozen", "[training]") {
  const TemporaryDirectory directory;
  const std::string first = (directory / "first").string();
  const std::string second = (directory / "second").string();
  std::filesystem::create_directory(first);
  std::filesystem::create_directory(second);
  const jobs::RunSummary saved = run(job_with({}), first);
  const std::string from = "initialize.from=\"" + first + "\"";

  SECTION("exactly") {
    // The statistics of the file count, not those that would be measured for these weights again.
    for (const char* learners : {"1", "2", "3"}) {
      const scheduler::Evaluation start =
          start_of(job_with({from, "training.batch_norm_statistics=AVERAGED",
                             std::string("learners.per_device.fixed=") + learners, "training.seed=7"}));
      CHECK(accuracy_of(start) == saved.test.value("accuracy"));
      CHECK(start.loss() == saved.test.value("loss"));
    }
  }

  SECTION("frozen layers keep their bytes, and the run's directory can be evaluated") {
    const auto model = [](const std::string& run) { return jobs::read_safetensors(run + "/model.safetensors"); };
    const jobs::JobOptions tuned =
        job_with({from, "training.freeze=\"norm1\"", "training.freeze=\"conv1*\"", "training.seed=7"});
    const jobs::RunSummary summary = run(tuned, second);
    CHECK(*summary.test.value("accuracy") > *saved.test.value("accuracy") - 0.05);
    const auto before = model(first);
    const auto after = model(second);
    REQUIRE(before.size() == after.size());
    int frozen = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      CAPTURE(before[i].name);
      const bool is_frozen = before[i].name.starts_with("norm1.") || before[i].name.starts_with("conv1");
      frozen += is_frozen ? 1 : 0;
      CHECK(is_same(before[i], after[i]) == is_frozen);
    }
    CHECK(frozen >= 5);
    const jobs::EvaluationResult again =
        jobs::evaluate_run(tuned, second + "/model.safetensors", summary.model_sha256, {}, {});
    CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
  }

  SECTION("fresh parameters have the values that a run without saved weights begins with") {
    jobs::JobOptions fresh = job_with({from, "initialize.fresh=\"norm2\"", "initialize.fresh=\"conv2\""});
    jobs::JobOptions without = job_with({});
    const auto session = jobs::open_session(fresh, "", {});
    const auto plain = jobs::open_session(without, "", {});
    const auto initial = plain->scheduler().snapshot(scheduler::Statistics::kAveraged);
    jobs::load_initial_weights(jobs::read_initial_weights(*fresh.initialize, *fresh.graph), session->scheduler());
    const auto loaded = session->scheduler().snapshot(scheduler::Statistics::kAveraged);
    const auto of_file = jobs::read_safetensors(first + "/model.safetensors");
    for (const dataflow::NamedTensor& tensor : loaded) {
      CAPTURE(tensor.name);
      const bool is_fresh = tensor.name.starts_with("norm2.") || tensor.name.starts_with("conv2.");
      CHECK(is_same(tensor, find(is_fresh ? initial : of_file, tensor.name)));
    }
  }
}

}  // namespace arbalest::tests
