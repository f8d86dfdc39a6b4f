// --set path=value.
#include <fmt/format.h>

#include "engine/host/topology.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

using Catch::Matchers::StartsWith;

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

TEST_CASE("overrides: --set replaces the file's values") {
  const JobOptions job =
      with({"training.batch_size=16", "training.seed=18446744073709551615", "learning_rate.base=1e-2",
            "learning_rate.with_learners=LINEAR", "name=trial-2", "optimizer.sgd.momentum=0.5"});
  CHECK(job.training.batch_size == 16);
  CHECK(job.training.max_epochs == 10);
  CHECK(job.training.seed == 18446744073709551615ULL);
  CHECK(job.learning_rate.base == 1e-2);
  CHECK(job.learning_rate.with_learners == scheduler::RateScaling::kLinear);
  CHECK(job.name == "trial-2");
  CHECK(engine::momentum_of(job.optimizer.rule) == 0.5F);
  CHECK(with({"name=\"quoted\""}).name == "quoted");
  CHECK(with({"training.batch_size=16", "training.batch_size=8"}).training.batch_size == 8);
}

TEST_CASE("overrides: --set chooses among alternatives") {
  CHECK(widths(*with({"model.zoo.mlp={}"}).graph) == std::vector<std::int64_t>{256, 128, 10});
  CHECK(widths(*with({"model.zoo.mlp={hidden: [64, 32]}"}).graph) == std::vector<std::int64_t>{64, 32, 10});
  CHECK(widths(*with({"model.zoo=mlp", "model.zoo.mlp.hidden=7"}).graph) == std::vector<std::int64_t>{7, 10});
  const JobOptions job = with({"data={mnist{}}", "data.mnist.directory=/data/mnist"});
  CHECK(job.data.kind == DataOptions::Kind::kIdx);
  CHECK(job.data.directory == "/data/mnist");
}

TEST_CASE("overrides: --set chooses an alternative by its bare name, or by its name and fields") {
  const JobOptions adamw = with({"optimizer=adamw"});
  CHECK(std::holds_alternative<engine::AdamW>(adamw.optimizer.rule));
  CHECK_THAT(adamw.resolved_text, ContainsSubstring("adamw {"));
  CHECK(engine::momentum_of(with({"optimizer=sgd{momentum: 0.25}"}).optimizer.rule) == 0.25F);
  CHECK(engine::momentum_of(with({"optimizer=sgd {momentum: 0.25}"}).optimizer.rule) == 0.25F);
  CHECK(with({"data=mnist"}).data.kind == DataOptions::Kind::kIdx);
  CHECK(with({"data=mnist{directory: '/data/x'}"}).data.directory == "/data/x");
  CHECK(widths(*with({"model.zoo=mlp"}).graph) == std::vector<std::int64_t>{256, 128, 10});
  CHECK(widths(*with({"model.zoo=mlp{hidden: [7, 5]}"}).graph) == std::vector<std::int64_t>{7, 5, 10});
  CHECK_THAT(with({"synchronization=sma"}).resolved_text, ContainsSubstring("period: 1"));
  CHECK_THAT(with({"synchronization=sma{period: 4}"}).resolved_text, ContainsSubstring("period: 4"));
  // Like a message in braces, an alternative's name replaces the whole message, including the file's other fields.
  const std::string clipped = std::string(kGoodJob) + "optimizer { clip_gradient_norm: 3 }\n";
  CHECK(parse(clipped, {"optimizer=adamw"}).optimizer.clip_gradient_norm == std::nullopt);
  // The later setting wins.
  CHECK_THAT(with({"synchronization=sma{period: 4}", "synchronization.sma.period=2"}).resolved_text,
             ContainsSubstring("period: 2"));
}

TEST_CASE("overrides: --set of a oneof keeps the message's other fields") {
  const JobOptions job = with({"learning_rate.schedule=exponential{factor: 0.5}"});
  CHECK(job.learning_rate.base == 0.01);
  CHECK_THAT(job.resolved_text, ContainsSubstring("exponential {"));
  CHECK_THAT(with({"learning_rate.schedule=cosine"}).resolved_text, ContainsSubstring("cosine {"));
  const std::string clipped = std::string(kGoodJob) + "optimizer { clip_gradient_norm: 3 }\n";
  CHECK(parse(clipped, {"optimizer.kind=adamw"}).optimizer.clip_gradient_norm == 3.0F);
}

TEST_CASE("overrides: --set can restore a field's default") {
  const std::string text = changed("batch_size: 32", "batch_size: 64 target_accuracy: 0.5");
  CHECK(parse(text).training.target_accuracy == 0.5);
  CHECK(parse(text, {"training.target_accuracy=default"}).training.target_accuracy == std::nullopt);
  CHECK(parse(text, {"training.batch_size=default"}).training.batch_size == 32);
  const std::string warm = changed("base: 0.01", "base: 0.01 warm_up { epochs: 2 }");
  CHECK_THAT(parse(warm).resolved_text, ContainsSubstring("warm_up"));
  CHECK(parse(warm, {"learning_rate.warm_up=default"}).resolved_text.find("warm_up") == std::string::npos);
  CHECK(with({"name=default"}).name == "default");
  CHECK_THAT(usage({"learning_rate.base=default"}),
             ContainsSubstring("--set learning_rate.base=default: error: ") && ContainsSubstring("base"));
}

TEST_CASE("overrides: --set of an unknown alternative is refused, with the list of alternatives") {
  CHECK(usage({"optimizer=sgdd"}) ==
        "--set optimizer=sgdd: error: 'sgdd' is not an alternative of optimizer; did you mean 'sgd'? (alternatives: "
        "sgd, rmsprop, adamw, adagrad)");
  CHECK_THAT(usage({"synchronization=smaa"}), ContainsSubstring("'smaa' is not an alternative of synchronization; did "
                                                                "you mean 'sma'?"));
  CHECK_THAT(usage({"optimizer=clip_gradient_norm"}), ContainsSubstring("not an alternative of optimizer"));
  CHECK_THAT(usage({"learning_rate.schedule=cosin{}"}),
             ContainsSubstring("'cosin' is not an alternative of schedule; did you mean 'cosine'?"));
  CHECK_THAT(usage({"learning_rate.schedule=3"}), ContainsSubstring("schedule takes the name of an alternative"));
  CHECK_THAT(usage({"learners.per_device=fixed"}), ContainsSubstring("which ends with .fixed=VALUE"));
  CHECK_THAT(usage({"synchronization=sma{perod: 4}"}),
             ContainsSubstring("--set synchronization=sma{perod: 4}: error: no field 'perod' in sma; did you mean "
                               "'period'?"));
  CHECK_THAT(usage({"synchronization=sma{period: 0}"}),
             ContainsSubstring("--set synchronization=sma{period: 0}: error: period must be in [1, 1000]"));
  CHECK_THAT(usage({"learning_rate.schedule=step{epochs: 2}"}),
             ContainsSubstring("--set learning_rate.schedule=step{epochs: 2}: error: "));
  CHECK_FALSE(usage({"training=sgd"}).empty());
  CHECK_FALSE(usage({"optimizer=sgd}"}).empty());
}

TEST_CASE("overrides: --set of a list replaces the file's list, and repeated options append") {
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

TEST_CASE("overrides: --set can change elements of a list") {
  const std::string text = with_model(
      "model { layers { name: \"a\" input: \"image\" dense { units: 9 } } layers { name: \"l\" input: [\"a\", "
      "\"label\"] "
      "softmax_cross_entropy {} } }");
  CHECK(widths(*parse(text, {"model.layers[0].dense.units=10"}).graph) == std::vector<std::int64_t>{10});
}

TEST_CASE("overrides: --set of an unknown field is refused with a suggestion") {
  CHECK(usage({"training.bach_size=16"}) ==
        "--set training.bach_size=16: error: no field 'bach_size' in training; did you mean 'batch_size'?");
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

TEST_CASE("overrides: --set of an invalid value is refused") {
  CHECK(usage({"training.batch_size=many"}) == "--set training.batch_size=many: error: expected an integer, not many");
  CHECK(usage({"training.batch_size=0"}) == "--set training.batch_size=0: error: batch_size must be at least 1, not 0");
  CHECK(usage({"learning_rate.base=nan"}) ==
        "--set learning_rate.base=nan: error: base must be a finite number, not nan");
  CHECK_THAT(usage({"model.zoo.mlp={hidden: 3,4}"}), ContainsSubstring("a fraction is written 3.4, and a list [3, 4]"));
  CHECK_THAT(usage({"learning_rate.base=0,01"}), ContainsSubstring("a fraction is written 0.01"));
  CHECK_THAT(usage({"training.target_accuracy=99%"}), ContainsSubstring("such as 0.99 for 99 %"));
  CHECK_THAT(usage({"training.target_accuracy=99"}), ContainsSubstring("did you mean 0.99?"));
  CHECK_THAT(usage({"devices=gpu:1"}),
             ContainsSubstring("--set devices=gpu:1: error: device 'gpu:1': there is no kind"));
  CHECK_THAT(usage({"learning_rate.with_learners=SQR"}), ContainsSubstring("did you mean 'SQRT'?"));
  CHECK_THAT(usage({"model.zoo.mlp={hidden: []}"}), ContainsSubstring("hidden is an empty list"));
  CHECK_THAT(usage({"devices=[]"}), ContainsSubstring("--set devices=[]: error: devices is an empty list"));
  CHECK_THAT(usage({"training.batch_size="}), ContainsSubstring("the value is missing"));
  CHECK_THAT(usage({"training.batch_size=16 max_epochs: 3"}), ContainsSubstring("must be a single value"));
  CHECK_THAT(usage({"training={bach_size: 3}"}), ContainsSubstring("no field 'bach_size' in training"));
  CHECK_THAT(usage({"name=a\xff"}), ContainsSubstring("name is not valid UTF-8"));
}

TEST_CASE("every invalid --set is reported") {
  CHECK(usage({"training.x=1", "training.seed=2", "name.y=3"}) ==
        "--set training.x=1: error: no field 'x' in training; its fields are batch_size, max_epochs, target_accuracy, "
        "seed, precision, kernels, batch_norm_statistics, batch_norm_examples, moving_average_epochs, "
        "mean_from_epoch, patience_epochs, min_improvement, max_minutes, freeze, on_divergence, "
        "rollback_factor, spike_factor\n"
        "--set name.y=3: error: name is a value and has no fields\n"
        "2 errors");
}

TEST_CASE("an invalid --set hides only the errors that follow from it") {
  CHECK(refusal(changed("max_epochs: 10", "max_epochs: 0"), {"training.bach_size=3"}) ==
        "--set training.bach_size=3: error: no field 'bach_size' in training; did you mean 'batch_size'?\n"
        "job.txtpb:4:27: error: max_epochs must be in [1, 1000000], not 0\n"
        "    4 | training { batch_size: 32 max_epochs: 0 }\n"
        "      |                           ^\n"
        "2 errors");
  const std::string without_data = changed("data { digits {} }\n", "");
  CHECK(refusal(without_data, {"data.mnst={}"}, engine::ErrorKind::kUsage).find("errors") == std::string::npos);
  const std::string without_rate = changed("base: 0.01", "");
  CHECK(refusal(without_rate, {"learning_rate.base=fast"}, engine::ErrorKind::kUsage).find("errors") ==
        std::string::npos);
}

TEST_CASE("an error caused by --set names that option") {
  const std::string layers = with_model(
      "model { layers { name: \"a\" input: \"image\" conv { filters: 2 kernel: 5 } } layers { name: \"b\" input: \"a\" "
      "conv "
      "{ filters: 2 kernel: 5 } } layers { name: \"c\" input: \"b\" dense { units: 10 } } layers { name: \"l\" input: "
      "[\"c\", "
      "\"label\"] softmax_cross_entropy {} } }");
  struct Case {
    std::string text;
    std::vector<std::string> settings;
    std::string said;
  };
  const std::string good(kGoodJob);
  for (const Case& test : std::vector<Case>{
           {good, {"synchronization.sma.period=1000000000"}, "period must be in [1, 1000]"},
           {good, {"synchronization.sma.period=600"}, "a round of 2 learners with period 600"},
           {good, {"training.batch_size=2000000000"}, "is larger than the training set"},
           {good, {"model.zoo.mlp={hidden: [100000, 100000]}"}, "layer 'dense2': its weight would be"},
           {layers, {"model.layers[0].conv.kernel=99"}, "layer 'a' (conv): a 99x99 window"},
           {layers, {"model.layers[0].conv.kernel=26"}, "layer 'b' (conv): a 5x5 window"},
           {layers, {"model.layers[2].dense.units=11"}, "layer 'c' (dense): gives 'l' 11 logits"},
           {layers, {"model.layers[1].name=x"}, "layer 'c' reads 'b'"},
           {changed("fixed: 2 } }", "fixed: 2 } }\nsynchronization { sma { alpha: 0.5 central_momentum: 0 } }"),
            {"learners.per_device.fixed=3"},
            "3 learners with alpha 0.5"},
       }) {
    INFO(test.said);
    // Other --set options make no difference.
    for (const std::string other : {"", "training.seed=2", "training.max_epochs=5"}) {
      std::vector<std::string> settings = test.settings;
      if (!other.empty()) settings.insert(other == "training.seed=2" ? settings.begin() : settings.end(), other);
      const std::string text = refusal(test.text, settings, engine::ErrorKind::kUsage);
      CHECK(text.starts_with("--set " + test.settings[0] + ": error: "));
      CHECK_THAT(text, ContainsSubstring(test.said));
      CHECK(text.find("job.txtpb") == std::string::npos);
    }
  }
}

TEST_CASE("an error of one layer in the file does not hide that --set causes the same error of another layer") {
  const std::string layers = with_model(
      "model { layers { name: \"c1\" input: \"x1\" relu {} } layers { name: \"x2\" input: \"image\" dense { units: 10 "
      "} } "
      "layers { name: \"c2\" input: \"x2\" relu {} } layers { name: \"l\" input: [\"c2\", \"label\"] "
      "softmax_cross_entropy {} } }");
  const std::string setting = "model.layers[1].name=y";
  const std::string text = refusal(layers, {setting});
  CHECK_THAT(text, ContainsSubstring("--set " + setting + ": error: layer 'c2' reads 'x2'"));
  CHECK_THAT(text, ContainsSubstring("error: layer 'c1' reads 'x1'"));
  CHECK(text.ends_with("2 errors"));
}

TEST_CASE("settings that contradict each other are named together, in their order") {
  const std::string text = changed("fixed: 2", "fixed: 4") + "synchronization { async_sgd { warm_start_epochs: 0 } }\n";
  const auto blamed = [&](const std::vector<std::string>& settings) {
    return refusal(text, settings, engine::ErrorKind::kUsage);
  };
  CHECK_THAT(blamed({"learners.per_device.fixed=20", "training.batch_size=2000", "training.seed=2"}),
             StartsWith("--set learners.per_device.fixed=20 --set training.batch_size=2000: error: one push of each"));
  // The first one is right with the file's values, and the second one is not.
  CHECK_THAT(blamed({"training.batch_size=64", "learners.per_device.fixed=700"}),
             StartsWith("--set learners.per_device.fixed=700: error: one push of each"));
  // A mistake with other numbers is the same mistake.
  CHECK_THAT(blamed({"learners.per_device.fixed=700", "training.batch_size=64"}),
             StartsWith("--set learners.per_device.fixed=700: error: one push of each"));
}

TEST_CASE("an error in the file names the file, whatever is set") {
  const std::string text = with_model("model { zoo { mlp { hidden: [1048576, 1048576] } } }");
  CHECK_THAT(refusal(text, {"training.batch_size=8"}), ContainsSubstring("job.txtpb:2:39: error: layer 'dense2'"));
}

TEST_CASE("errors in the file and in --set are reported together") {
  CHECK(refusal(changed("max_epochs: 10", "max_epochs: 0"), {"learning_rate.base=-1"}) ==
        "--set learning_rate.base=-1: error: base must be in (0, 1000], not -1\n"
        "job.txtpb:4:27: error: max_epochs must be in [1, 1000000], not 0\n"
        "    4 | training { batch_size: 32 max_epochs: 0 }\n"
        "      |                           ^\n"
        "2 errors");
}

}  // namespace arbalest::jobs
