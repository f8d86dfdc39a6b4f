// Reads a run's job on a machine other than the one that trained it.
#include "dataflow/split/split_graph.h"
#include "engine/host/topology.h"
#include "options/loading/evaluation_job.h"
#include "options/readers/learners_reader.h"
#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

// Writes the files of a finished run.
class SavedJob {
 public:
  explicit SavedJob(const std::string& text) { tests::write_text(path(), text); }

  std::string path() const { return (directory_ / "job.txtpb").string(); }
  JobOptions load(const std::vector<std::string>& devices = {}) const { return load_for_evaluation(path(), devices); }

 private:
  tests::TemporaryDirectory directory_;
};

std::string on(const std::string& device) { return std::string(kGoodJob) + "devices: \"" + device + "\"\n"; }

}  // namespace

TEST_CASE("a run is evaluated on its own devices if this machine has them") {
  const std::string core = "cpu:" + std::to_string(engine::host::allowed_cores().back());
  const JobOptions job = SavedJob(on(core)).load();
  REQUIRE(job.devices.size() == 1);
  CHECK(job.devices[0].name == core);
  CHECK(job.learners_per_device == std::vector<int>{2});
  CHECK(job.warnings.empty());
}

TEST_CASE("a run whose devices are missing here is evaluated on this machine's, with a warning") {
  for (const std::string gone : {"cpu:99999", "cuda:4096"}) {
    const JobOptions job = SavedJob(on(gone)).load();
    const auto here = engine::list_devices();
    REQUIRE(job.devices.size() == here.size());
    CHECK(job.devices[0].name == here[0].name);
    CHECK(job.learners_per_device[0] == default_learners(here[0]));
    CHECK_FALSE(job.learners_are_given);
    REQUIRE(job.warnings.size() == 1);
    CHECK_THAT(job.warnings[0], ContainsSubstring("device '" + gone + "'") &&
                                    ContainsSubstring("Evaluating on " + here[0].name) &&
                                    ContainsSubstring("the last digits may differ"));
  }
}

TEST_CASE("a job whose precision no run has settled is evaluated in FP32, which a note says") {
  const JobOptions job = SavedJob(changed("max_epochs: 10", "precision: AUTO")).load({"cpu"});
  CHECK(job.training.precision == engine::Precision::kFloat32);
  REQUIRE(job.warnings.size() == 1);
  CHECK_THAT(job.warnings[0], ContainsSubstring("precision AUTO") && ContainsSubstring("computes in FP32"));
}

TEST_CASE("a run that trained in teams is evaluated on devices without them") {
  std::string text = on("cuda:4096");
  text.replace(text.find("fixed: 2"), std::string("fixed: 2").size(), "fixed: 8 team: 4");
  const SavedJob saved(text);
  CHECK(saved.load().team == 1);
  CHECK(saved.load({"cpu"}).team == 1);
}

TEST_CASE("a run with split layers has whole layers on devices that the user names") {
  const SavedJob saved(R"(model {
  layers { name: "hidden" input: "image" dense { units: 30 split: COLUMNS } }
  layers { name: "relu" input: "hidden" relu {} }
  layers { name: "logits" input: "relu" dense { units: 10 split: ROWS } }
  layers { name: "loss" input: "logits" input: "label" softmax_cross_entropy {} }
}
data { digits {} }
learning_rate { base: 0.01 }
synchronization { s_sgd {} }
learners { per_device { fixed: 1 } }
)");
  CHECK(dataflow::split_layers(*saved.load().graph).size() == 2);
  const JobOptions job = saved.load({"cpu"});
  CHECK(job.devices.size() == 1);
  CHECK(dataflow::split_layers(*job.graph).empty());
}

TEST_CASE("a run is evaluated on the devices that the user names, for any number of learners") {
  // This job could not train here: an epoch has one mini-batch for two learners, and alpha 0.9 is unstable with more
  // than two.
  const std::string text =
      changed("batch_size: 32", "batch_size: 20000").replace(0, 0, "synchronization { sma { alpha: 0.9 } }\n");
  const SavedJob saved(text + "devices: \"cpu:99999\"\n");
  const JobOptions job = saved.load({"cpu"});
  REQUIRE(job.devices.size() == 1);
  CHECK(job.devices[0].name == "cpu");
  CHECK(job.training.batch_size == 20000);
  CHECK(job.learners_per_device == std::vector<int>{default_learners(job.devices[0])});
  CHECK(job.warnings.empty());
  for (const std::string bad : {"gpu:0", "cuda:4096", "cpu:99999", ""}) {
    try {
      saved.load({bad});
      FAIL(bad << " was accepted");
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kUsage);
      CHECK_THAT(error.what(), ContainsSubstring("--devices: device '" + bad + "'"));
    }
  }
}

TEST_CASE("a run in a precision that the devices do not support is evaluated in FP32, with a warning") {
  const SavedJob saved(changed("max_epochs: 10", "max_epochs: 10 precision: TF32") + "devices: \"cuda:4096\"\n");
  const JobOptions job = saved.load({"cpu"});
  CHECK(job.training.precision == engine::Precision::kFloat32);
  REQUIRE(job.warnings.size() == 1);
  CHECK(job.warnings[0] ==
        "the run computed in TF32, which 'cpu' does not. Evaluating in FP32; the accuracy may differ a little");
  // If the job names no devices, this machine's devices are checked.
  const JobOptions here = saved.load();
  const bool has_gpu = here.devices[0].is_cuda();
  CHECK(here.training.precision == (has_gpu ? engine::Precision::kTensorFloat32 : engine::Precision::kFloat32));
  CHECK(here.warnings.size() == (has_gpu ? 1U : 2U));
}

TEST_CASE("a saved job that switches schemes is evaluated on any machine") {
  const SavedJob saved(
      changed("learners { per_device { fixed: 2 } }",
              "learners { per_device { fixed: 9 } }\ndevices: \"cpu\"\nsynchronization { bmuf { rate: 1.3 "
              "nesterov: true period: 60 } switch { at_epoch: 2 learners: 8 s_sgd {} } }"));
  CHECK(saved.load().switches.size() == 1);
  CHECK(saved.load({"cpu"}).switches.empty());
}

TEST_CASE("a damaged saved job is refused like any other job") {
  const SavedJob saved(changed("max_epochs: 10", "max_epochs: x"));
  CHECK_THROWS_WITH(saved.load(), ContainsSubstring("job.txtpb:4:39: error: expected an integer, not x"));
}

}  // namespace arbalest::jobs
