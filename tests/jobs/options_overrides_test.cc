// --set path=value.
#include <fmt/format.h>

#include "engine/host/topology.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

JobOptions with(const std::vector<std::string>& overrides) { return parse(std::string(kGoodJob), overrides); }

std::string usage(const std::vector<std::string>& overrides) {
  return refusal(std::string(kGoodJob), overrides, engine::ErrorKind::kUsage);
}

std::vector<std::int64_t> widths(const dataflow::Graph& graph) {
  std::vector<std::int64_t> result;
  const auto shapes = graph.shapes(1);
  for (const auto& node : graph.nodes()) {
    if (node.layer->kind() == "dense") result.push_back(shapes[static_cast<std::size_t>(node.output)][1]);
  }
  return result;
}

}  // namespace

TEST_CASE("settings take the place of the file's values") {
  const JobOptions job =
      with({"training.batch_size=16", "training.seed=18446744073709551615", "learning_rate.base=1e-2",
            "learning_rate.with_learners=LINEAR", "name=trial-2", "optimizer.sgd.momentum=0.5"});
  CHECK(job.training.batch_size == 16);
  CHECK(job.training.max_epochs == 10);
  CHECK(job.training.seed == 18446744073709551615ULL);
  CHECK(job.learning_rate.base == 1e-2);
  CHECK(job.learning_rate.with_learners == scheduler::LearnerScaling::kLinear);
  CHECK(job.name == "trial-2");
  CHECK(job.optimizer.momentum == 0.5F);
  CHECK(with({"name=\"quoted\""}).name == "quoted");
  CHECK(with({"training.batch_size=16", "training.batch_size=8"}).training.batch_size == 8);
}

TEST_CASE("settings choose among alternatives") {
  CHECK(widths(*with({"model.zoo.mlp={}"}).graph) == std::vector<std::int64_t>{256, 128, 10});
  CHECK(widths(*with({"model.zoo.mlp={hidden: [64, 32]}"}).graph) == std::vector<std::int64_t>{64, 32, 10});
  CHECK(widths(*with({"model.zoo.mlp.hidden=7"}).graph) == std::vector<std::int64_t>{7, 10});
  const JobOptions job = with({"data.mnist.directory=/data/mnist"});
  CHECK(job.data.kind == DataOptions::Kind::kMnist);
  CHECK(job.data.directory == "/data/mnist");
}

TEST_CASE("settings of a list replace the file's and append to each other") {
  const std::vector<int> cores = engine::host::allowed_cores();
  const std::string first = fmt::format("cpu:{}", cores.front());
  const std::string last = fmt::format("cpu:{}", cores.back());
  const std::string text = std::string(kGoodJob) + "devices: \"cpu\"\n";
  REQUIRE(parse(text, {"devices=" + first}).devices.size() == 1);
  CHECK(parse(text, {"devices=" + first}).devices[0].name == first);
  CHECK(parse(text, {"devices[0]=" + first}).devices[0].name == first);
  if (cores.size() < 2) return;
  const JobOptions both = parse(text, {"devices=" + first, "devices=" + last});
  REQUIRE(both.devices.size() == 2);
  CHECK(both.devices[1].name == last);
  CHECK(both.learners_per_device == std::vector<int>{2, 2});
  CHECK(parse(text, {fmt::format(R"(devices=["{}", "{}"])", first, last)}).devices.size() == 2);
}

TEST_CASE("settings reach into elements of a list") {
  const std::string text = with_model(
      "model { layers { name: \"a\" input: \"image\" dense { units: 9 } } layers { name: \"l\" input: [\"a\", "
      "\"label\"] "
      "softmax_cross_entropy {} } }");
  CHECK(widths(*parse(text, {"model.layers[0].dense.units=10"}).graph) == std::vector<std::int64_t>{10});
}

TEST_CASE("settings that name nothing are refused with a suggestion") {
  CHECK(usage({"training.bach_size=16"}) ==
        "--set training.bach_size=16: no field 'bach_size' in training; did you mean 'batch_size'?");
  CHECK_THAT(usage({"trainin.batch_size=16"}), ContainsSubstring("no field 'trainin' in the job; did you mean "
                                                                 "'training'?"));
  CHECK_THAT(usage({"data.digits.size=3"}), ContainsSubstring("no field 'size' in digits"));
  CHECK_THAT(usage({"name.first=x"}), ContainsSubstring("name is a value and has no fields"));
  CHECK_THAT(usage({"training"}), ContainsSubstring("expected path=value"));
  CHECK_THAT(usage({"training..seed=3"}), ContainsSubstring("'training..seed' is not the name of a field"));
  CHECK_THAT(usage({"=3"}), ContainsSubstring("'' is not the name of a field"));
  CHECK_THAT(usage({"model.layers.name=x"}), ContainsSubstring("layers is a list; name the element, as in layers[0]"));
  CHECK_THAT(usage({"model.layers[0].name=x"}), ContainsSubstring("layers has 0 elements, counted from 0"));
  CHECK_THAT(usage({"training[0].seed=3"}), ContainsSubstring("training is not a list"));
}

TEST_CASE("settings of values that a field cannot have are refused") {
  CHECK(usage({"training.batch_size=many"}) == "--set training.batch_size=many: expected an integer, not many");
  CHECK(usage({"training.batch_size=0"}) == "--set training.batch_size=0: batch_size must be at least 1, not 0");
  CHECK(usage({"learning_rate.base=nan"}) == "--set learning_rate.base=nan: base must be a finite number, not nan");
  CHECK_THAT(usage({"devices=gpu:1"}), ContainsSubstring("--set devices=gpu:1: device 'gpu:1': there is no kind"));
  CHECK_THAT(usage({"learning_rate.with_learners=SQR"}), ContainsSubstring("did you mean 'SQRT'?"));
  CHECK_THAT(usage({"model.zoo.mlp.hidden=[]"}), ContainsSubstring("hidden is an empty list"));
  CHECK_THAT(usage({"model.zoo.mlp={hidden: []}"}), ContainsSubstring("hidden is an empty list"));
  CHECK_THAT(usage({"devices=[]"}), ContainsSubstring("--set devices=[]: devices is an empty list"));
  CHECK_THAT(usage({"training.batch_size="}), ContainsSubstring("the value is missing"));
  CHECK_THAT(usage({"training.batch_size=16 max_epochs: 3"}), ContainsSubstring("more than one value"));
  CHECK_THAT(usage({"training={bach_size: 3}"}), ContainsSubstring("no field 'bach_size' in training"));
  CHECK_THAT(usage({"name=a\xff"}), ContainsSubstring("name is not valid UTF-8"));
}

TEST_CASE("all settings that are wrong are named") {
  CHECK(usage({"training.x=1", "training.seed=2", "name.y=3"}) ==
        "--set training.x=1: no field 'x' in training; its fields are batch_size, max_epochs, target_accuracy, seed\n"
        "--set name.y=3: name is a value and has no fields");
}

TEST_CASE("a wrong file with a wrong setting is a wrong job") {
  CHECK(refusal(changed("max_epochs: 10", "max_epochs: 0"), {"learning_rate.base=-1"}) ==
        "--set learning_rate.base=-1: base must be in (0, 1000], not -1\n"
        "job.txtpb:4:27: error: max_epochs must be in [1, 1000000], not 0\n"
        "    4 | training { batch_size: 32 max_epochs: 0 }\n"
        "      |                           ^\n"
        "2 errors");
}

}  // namespace arbalest::jobs
