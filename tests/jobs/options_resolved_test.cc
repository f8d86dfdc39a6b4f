// Valid jobs: their defaults, and the resolved text in the run directory.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "arbalest/v1/zoo.pb.h"
#include "engine/backends/devices.h"
#include "engine/host/topology.h"
#include "options/readers/learners_reader.h"
#include "options/text/field_documentation.h"
#include "tests/jobs/job_text.h"
#include "tests/jobs/same_synchronization.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kShortest = "model { zoo { lenet {} } } data { digits {} } learning_rate { base: 0.01 }";

std::vector<std::filesystem::path> ready_jobs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(tests::source_directory() + "/configs")) {
    if (entry.path().extension() == ".txtpb") paths.push_back(entry.path());
  }
  return paths;
}

void require_same_graph(const dataflow::Graph& a, const dataflow::Graph& b) {
  REQUIRE(a.nodes().size() == b.nodes().size());
  const auto shapes_a = a.shapes(4);
  const auto shapes_b = b.shapes(4);
  CHECK(shapes_a == shapes_b);
  for (std::size_t n = 0; n < a.nodes().size(); ++n) {
    const auto& node_a = a.nodes()[n];
    const auto& node_b = b.nodes()[n];
    INFO(node_a.name);
    CHECK(node_a.name == node_b.name);
    CHECK(node_a.inputs == node_b.inputs);
    CHECK(node_a.layer->kind() == node_b.layer->kind());
    const auto parameters_a = node_a.layer->parameters(dataflow::Graph::input_shapes(node_a, shapes_a));
    const auto parameters_b = node_b.layer->parameters(dataflow::Graph::input_shapes(node_b, shapes_b));
    REQUIRE(parameters_a.size() == parameters_b.size());
    for (std::size_t p = 0; p < parameters_a.size(); ++p) {
      CHECK(parameters_a[p].name == parameters_b[p].name);
      CHECK(parameters_a[p].shape == parameters_b[p].shape);
      CHECK(parameters_a[p].initializer.kind == parameters_b[p].initializer.kind);
      CHECK(parameters_a[p].learning_rate_multiplier == parameters_b[p].learning_rate_multiplier);
      CHECK(parameters_a[p].decay_multiplier == parameters_b[p].decay_multiplier);
    }
  }
}

void require_same(const JobOptions& a, const JobOptions& b) {
  CHECK(a.name == b.name);
  CHECK(a.data.kind == b.data.kind);
  CHECK(a.data.directory == b.data.directory);
  CHECK(a.data.input == b.data.input);
  CHECK(a.data.normalization.mean == b.data.normalization.mean);
  CHECK(a.data.normalization.stddev == b.data.normalization.stddev);
  CHECK(a.training.batch_size == b.training.batch_size);
  CHECK(a.training.max_epochs == b.training.max_epochs);
  CHECK(a.training.target_accuracy == b.training.target_accuracy);
  CHECK(a.training.seed == b.training.seed);
  CHECK(a.training.precision == b.training.precision);
  CHECK(a.optimizer.rule.index() == b.optimizer.rule.index());
  CHECK(engine::momentum_of(a.optimizer.rule) == engine::momentum_of(b.optimizer.rule));
  CHECK(engine::weight_decay_of(a.optimizer.rule) == engine::weight_decay_of(b.optimizer.rule));
  CHECK(a.optimizer.clip_gradient_norm == b.optimizer.clip_gradient_norm);
  CHECK(a.optimizer.without_decay == b.optimizer.without_decay);
  CHECK(a.learning_rate.base == b.learning_rate.base);
  CHECK(a.learning_rate.with_learners == b.learning_rate.with_learners);
  CHECK(scheduler::name_of(a.learning_rate.curve) == scheduler::name_of(b.learning_rate.curve));
  for (double epoch = 0.0; epoch < 20.0; epoch += 0.25) {
    if (a.learning_rate.at(epoch, 3) != b.learning_rate.at(epoch, 3)) FAIL("other rates at epoch " << epoch);
    if (a.learning_rate.drops_before(epoch) != b.learning_rate.drops_before(epoch)) FAIL("other drops at " << epoch);
  }
  check_same_synchronization(a, b);
  CHECK(a.learners_per_device == b.learners_per_device);
  REQUIRE(a.devices.size() == b.devices.size());
  for (std::size_t i = 0; i < a.devices.size(); ++i) CHECK(a.devices[i].name == b.devices[i].name);
  CHECK(a.warnings == b.warnings);
  CHECK(a.resolved_text == b.resolved_text);
  REQUIRE((a.graph == nullptr) == (b.graph == nullptr));
  REQUIRE(a.sparse.has_value() == b.sparse.has_value());
  REQUIRE((a.graph != nullptr || a.sparse.has_value()));  // the values of a sparse model are in the text
  if (a.graph != nullptr) require_same_graph(*a.graph, *b.graph);
}

}  // namespace

TEST_CASE("missing fields have their defaults") {
  const JobOptions job = parse(kShortest);
  CHECK(job.name == "job");
  CHECK(job.training.batch_size == TrainingOptions{}.batch_size);
  CHECK(job.training.max_epochs == TrainingOptions{}.max_epochs);
  CHECK_FALSE(job.training.target_accuracy.has_value());
  CHECK(job.training.precision == engine::Precision::kFloat32);
  REQUIRE(std::holds_alternative<engine::Sgd>(job.optimizer.rule));
  CHECK(engine::momentum_of(job.optimizer.rule) == engine::Sgd{}.momentum);
  CHECK_FALSE(job.optimizer.clip_gradient_norm.has_value());
  CHECK(job.optimizer.without_decay.empty());
  CHECK(job.learning_rate.with_learners == scheduler::LearningRateSchedule{}.with_learners);
  CHECK(scheduler::name_of(job.learning_rate.curve) == "fixed");
  CHECK(job.learning_rate.warm_up.epochs == 0.0);
  CHECK_FALSE(job.synchronization.pull.has_value());
  CHECK(job.synchronization.momentum == sma::Options{}.momentum);
  const std::vector<engine::DeviceSpec> devices = engine::list_devices();
  REQUIRE(job.devices.size() == devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    CHECK(job.devices[d].name == devices[d].name);
    CHECK(job.learners_per_device[d] == default_learners(devices[d]));
  }
  CHECK(job.data.input == dataflow::image_input({1, 28, 28}, 10));
}

TEST_CASE("fields get the defaults of the schema, and those of alternatives only where these are chosen") {
  const auto check = [&](const std::vector<std::string>& settings, const std::vector<std::string>& lines) {
    CAPTURE(settings);
    const std::string resolved = parse(kShortest, settings).resolved_text;
    for (const std::string& line : lines) CHECK_THAT(resolved, ContainsSubstring(" " + line + "\n"));
  };
  check({}, {"batch_size: 32", "max_epochs: 10", "seed: 1", "precision: FP32", "on_divergence: STOP",
             "compare_rounds: 500", "weight_decay: 0", "nesterov: false", "central_momentum: 0.7", "period: 1",
             "with_learners: SQRT", "every_minutes: 10", "keep_last: 3", "peer_timeout_seconds: 30"});
  check({"training.on_divergence=ROLL_BACK"}, {"rollback_factor: 0.5", "spike_factor: 3"});
  check({"optimizer.rmsprop={}"}, {"smoothing: 0.99", "momentum: 0", "epsilon: 1e-08", "weight_decay: 0"});
  check({"optimizer.adamw={}"}, {"beta1: 0.9", "beta2: 0.999", "epsilon: 1e-08", "weight_decay: 0.01"});
  check({"optimizer.adagrad={}"}, {"epsilon: 1e-10", "weight_decay: 0"});
  check({"learning_rate.warm_up.epochs=1"}, {"start_factor: 0.1"});
  check({"learning_rate.inverse.gamma=1"}, {"power: 1"});
  check({"learning_rate.polynomial={}"}, {"power: 1", "final_factor: 0"});
  check({"learning_rate.cyclic.epochs=4"}, {"rising: 0.5", "start_factor: 0.1", "amplitude_factor: 1"});
  check({"learning_rate.plateau={}"},
        {"factor: 0.1", "patience: 10", "min_improvement: 0.0001", "cooldown: 0", "min_factor: 0"});
  check({"learning_rate.one_cycle={}"}, {"rising: 0.3", "start_factor: 0.04", "final_factor: 4e-06"});
  const std::string cosine = parse(kShortest, {"learning_rate.cosine={}"}).resolved_text;
  CHECK_THAT(cosine, ContainsSubstring("  cosine {\n    epochs: 10\n    final_factor: 0\n  }\n"));
  for (const char* other : {"fixed {", "rollback_factor", "with_batch_size", "every_epochs"}) {
    CHECK_THAT(cosine, !ContainsSubstring(other));
  }
}

TEST_CASE("every field of an optimizer sets its option") {
  const auto rule = [](const std::string& optimizer) { return parse(kShortest, {"optimizer=" + optimizer}).optimizer; };
  const auto sgd = std::get<engine::Sgd>(rule("{ sgd { momentum: 0.5 nesterov: true weight_decay: 0.25 } }").rule);
  CHECK((sgd.momentum == 0.5F && sgd.nesterov && sgd.weight_decay == 0.25F));
  const auto rms_prop = std::get<engine::RmsProp>(
      rule("{ rmsprop { smoothing: 0.75 momentum: 0.5 epsilon: 0.125 weight_decay: 0.25 } }").rule);
  CHECK((rms_prop.smoothing == 0.75F && rms_prop.momentum == 0.5F));
  CHECK((rms_prop.epsilon == 0.125F && rms_prop.weight_decay == 0.25F));
  const auto adam_w =
      std::get<engine::AdamW>(rule("{ adamw { beta1: 0.5 beta2: 0.75 epsilon: 0.125 weight_decay: 0.25 } }").rule);
  CHECK((adam_w.beta1 == 0.5F && adam_w.beta2 == 0.75F));
  CHECK((adam_w.epsilon == 0.125F && adam_w.weight_decay == 0.25F));
  const auto adagrad = std::get<engine::Adagrad>(rule("{ adagrad { epsilon: 0.125 weight_decay: 0.25 } }").rule);
  CHECK((adagrad.epsilon == 0.125F && adagrad.weight_decay == 0.25F));
  const OptimizerOptions both = rule("{ adamw {} clip_gradient_norm: 5 exclude_from_weight_decay: BIASES }");
  CHECK(both.clip_gradient_norm == 5.0F);
  CHECK(both.without_decay == std::vector{dataflow::ParameterKind::kBias});
  CHECK(rule("{ exclude_from_weight_decay: NORMALIZATION }").without_decay ==
        std::vector{dataflow::ParameterKind::kNormalization});
}

TEST_CASE("a schedule that restarts ends at the next restart or with the job by default") {
  for (const std::string curve : {"polynomial", "cosine", "one_cycle"}) {
    CAPTURE(curve);
    const JobOptions job =
        parse(kShortest, {"training.max_epochs=12", "learning_rate." + curve + "={}", "learning_rate.warm_up.epochs=1",
                          "learning_rate.restart={epoch: 4}", "learning_rate.restart={epoch: 6.5 factor: 0.5}"});
    CHECK_THAT(job.resolved_text, ContainsSubstring("    epochs: 3\n"));
    const std::vector<scheduler::Restart>& restarts = job.learning_rate.restarts;
    REQUIRE(restarts.size() == 2);
    CHECK((restarts[0].epoch == 4.0 && restarts[0].epochs == 2.5 && restarts[0].factor == 1.0));
    CHECK((restarts[1].epoch == 6.5 && restarts[1].epochs == 5.5 && restarts[1].factor == 0.5));
    CHECK(job.warnings.empty());
    require_same(parse(job.resolved_text), job);
    CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);
  }
}

TEST_CASE("a schedule with an end ends with the job by default") {
  for (const std::string curve : {"polynomial", "cosine", "one_cycle"}) {
    CAPTURE(curve);
    const auto with = [&](std::vector<std::string> settings) {
      settings.push_back("training.max_epochs=12");
      return parse(kShortest, settings);
    };
    const JobOptions whole = with({"learning_rate." + curve + "={}"});
    CHECK_THAT(whole.resolved_text, ContainsSubstring("    epochs: 12\n"));
    const JobOptions warmed = with({"learning_rate." + curve + "={}", "learning_rate.warm_up.epochs=2.5"});
    CHECK_THAT(warmed.resolved_text, ContainsSubstring("    epochs: 9.5\n"));
    CHECK(warmed.learning_rate.at(12.0, 1) == whole.learning_rate.at(12.0, 1));
    CHECK(whole.learning_rate.at(11.99, 1) > whole.learning_rate.at(12.0, 1));
    const JobOptions shorter = with({"learning_rate." + curve + ".epochs=6"});
    CHECK(shorter.learning_rate.at(6.0, 1) == whole.learning_rate.at(12.0, 1));
    require_same(parse(warmed.resolved_text), warmed);
  }
}

TEST_CASE("the documentation states the defaults that follow from the machine") {
  const engine::DeviceSpec gpu{"cuda:0", {}, 0};
  const engine::DeviceSpec many_cores{"cpu:0-99", std::vector<int>(100), -1};
  const engine::DeviceSpec one_core{"cpu:0", {0}, -1};
  CHECK(default_learners(one_core) == 1);
  CHECK_THAT(field_documentation("learners.per_device"),
             ContainsSubstring(fmt::format("Default: {} on a GPU; on a CPU device as many as it has cores, at most {}.",
                                           default_learners(gpu), default_learners(many_cores))));
}

TEST_CASE("the resolved text has every field and gives the same job") {
  const JobOptions job = parse(
      R"(name: "j" data { fashion_mnist {} normalization { mean: 0.3 } }
         model {
           layers { name: "p" input: "image" max_pool { kernel: 2 } }
           layers { name: "c" input: "p" conv {
             filters: 3 kernel_height: 3 kernel_width: 5 padding: 1 use_bias: false } }
           layers { name: "e" input: "c" conv { filters: 3 kernel: 3 stride: 2 padding_mode: SAME groups: 3 } }
           layers { name: "g" input: "e" local_response_norm {} }
           layers { name: "f" input: "g" leaky_relu {} }
           layers { name: "r" input: "f" relu6 {} }
           layers { name: "h" input: "r" hard_swish {} }
           layers { name: "v" input: "h" conv { filters: 3 kernel: 3 padding: 1 extra_padding: -1 } }
           layers { name: "d" input: "v" dropout {} }
           layers { name: "logits" input: "d" dense { units: 10 bias { initializer { gaussian {} } } } }
           layers { name: "loss" input: "logits" input: "label" softmax_cross_entropy {} }
         }
         learning_rate { base: 0.012345678901234567 multistep { drop { epoch: 2.5 factor: 0.1 } } }
         synchronization { sma { alpha: 0.3 central_momentum: 0.7 period: 3 } } learners { per_device { fixed: 2 } })",
      {"training.seed=7", "optimizer.sgd.weight_decay=5e-4"});
  CHECK_THAT(job.resolved_text, Catch::Matchers::StartsWith("# proto-file: arbalest/v1/job.proto\n"
                                                            "# proto-message: arbalest.v1.Job\n\nname: \"j\"\n"));
  for (const std::string& said : std::vector<std::string>{"seed: 7\n",
                                                          "weight_decay: 0.0005\n",
                                                          "directory: \"fashion-mnist\"\n",
                                                          "mean: 0.3\n",
                                                          "stddev: 0.353\n",
                                                          "batch_size: 32\n",
                                                          "with_learners: SQRT\n",
                                                          "devices: \"" + engine::list_devices().front().name + "\"\n",
                                                          "fixed: 2\n",
                                                          "stride: 2\n",
                                                          "padding_mode: EXPLICIT\n",
                                                          "padding_mode: SAME\n",
                                                          "ceil_mode: false\n",
                                                          "dilation: 1\n",
                                                          "groups: 1\n",
                                                          "groups: 3\n",
                                                          "ratio: 0.5\n",
                                                          "label_smoothing: 0\n",
                                                          "slope: 0.01\n",
                                                          "size: 5\n",
                                                          "beta: 0.75\n",
                                                          "base: 0.012345678901234567\n"}) {
    CHECK_THAT(job.resolved_text, ContainsSubstring(said));
  }
  require_same(parse(job.resolved_text), job);
}

TEST_CASE("the resolved text omits alpha if it is 1/k, so that alpha follows the number of learners") {
  const JobOptions job = parse(kShortest, {"learners.per_device.fixed=2"});
  CHECK(job.resolved_text.find("alpha") == std::string::npos);
  CHECK(job.synchronization.pull_for(2) == 0.5F);
  const JobOptions more = parse(job.resolved_text, {"learners.per_device.fixed=4"});
  CHECK(more.synchronization.pull_for(4) == 0.25F);
}

TEST_CASE("every job in configs loads, and so does its resolved text") {
  const auto paths = ready_jobs();
  CHECK(paths.size() >= 6);
  for (const auto& path : paths) {
    INFO(path.string());
    const JobOptions job = load_job(path.string());
    CHECK(job.name == path.stem().string());
    CHECK_THAT(tests::read_text(path),
               Catch::Matchers::StartsWith("# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n"));
    require_same(parse(job.resolved_text), job);
  }
}

TEST_CASE("LeNet as a list of layers is LeNet of the zoo") {
  const std::string configs = tests::source_directory() + "/configs/";
  require_same_graph(*load_job(configs + "lenet-layers-digits.txtpb").graph,
                     *load_job(configs + "lenet-digits.txtpb").graph);
}

TEST_CASE("an expanded job lists its layers without defaults and is the same job") {
  const auto expand = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    return expand_job(SourceText("job.txtpb", text), overrides);
  };
  const std::string text = expand(kShortest, {"training.batch_size=16"});
  CHECK(text ==
        "# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n\n"
        "name: \"job\"\nmodel {\n"
        "  layers { name: \"conv1\" input: \"image\" conv { filters: 20 kernel: 5 weight { initializer { xavier { } } "
        "} } }\n"
        "  layers { name: \"pool1\" input: \"conv1\" max_pool { kernel: 2 stride: 2 } }\n"
        "  layers { name: \"conv2\" input: \"pool1\" conv { filters: 50 kernel: 5 weight { initializer { xavier { } } "
        "} } }\n"
        "  layers { name: \"pool2\" input: \"conv2\" max_pool { kernel: 2 stride: 2 } }\n"
        "  layers { name: \"dense1\" input: \"pool2\" dense { units: 500 weight { initializer { xavier { } } } } }\n"
        "  layers { name: \"relu1\" input: \"dense1\" relu { } }\n"
        "  layers { name: \"logits\" input: \"relu1\" dense { units: 10 weight { initializer { xavier { } } } } }\n"
        "  layers { name: \"loss\" input: \"logits\" input: \"label\" softmax_cross_entropy { } }\n"
        "}\ndata {\n  digits {\n  }\n}\ntraining {\n  batch_size: 16\n}\nlearning_rate {\n  base: 0.01\n}\n");
  CHECK(expand(text) == text);
  const JobOptions whole = parse(kShortest, {"training.batch_size=16"});
  const JobOptions listed = parse(text);
  require_same_graph(*listed.graph, *whole.graph);
  // Except for the model, all values are equal, defaults included.
  const auto without_model = [](const std::string& resolved) {
    const std::size_t model = resolved.find("\nmodel {");
    return resolved.substr(0, model) + resolved.substr(resolved.find("\n}", model));
  };
  CHECK(without_model(listed.resolved_text) == without_model(whole.resolved_text));
  CHECK_THROWS_AS(expand(with_model("model { zoo { mlp { hidden: 0 } } }")), engine::Error);
}

TEST_CASE("every model of the zoo equals its list of layers") {
  std::vector<std::string> models{"mlp { hidden: [5, 4, 3] }",
                                  "lenet { batch_norm: true }",
                                  "alexnet { variant: GROUPED dropout: 0.25 }",
                                  "vgg { depth: 11 batch_norm: true head: CIFAR dropout: 0 }",
                                  "vgg { depth: 19 }",
                                  "resnet_cifar { depth: 110 }",
                                  "resnet { depth: 18 }",
                                  "resnet { depth: 34 version: V2 }",
                                  "resnet { depth: 101 version: V1 }",
                                  "resnet { depth: 152 version: V2 }",
                                  "inception_v3 { auxiliary_head: false dropout: 0.25 }",
                                  "mobilenet_v2 { width: 1.4 dropout: 0 }",
                                  "matrix_factorization { width: 3 mean: 3.5 }"};
  const auto& all = *v1::Zoo::descriptor();
  for (int i = 0; i < all.field_count(); ++i) models.push_back(all.field(i)->name() + " {}");
  for (const std::string& model : models) {
    CAPTURE(model);
    const bool predicts = model.starts_with("matrix_factorization");
    const std::string data = predicts ? "ratings { directory: \"d\" sizes: [50, 40] }"
                                      : "npy { directory: \"d\" channels: 3 height: 299 width: 299 classes: 7 }";
    const std::string job = "model { zoo { " + model + " } } data { " + data + " } learning_rate { base: 0.01 }";
    require_same_graph(*parse(expand_job(SourceText("job.txtpb", job))).graph, *parse(job).graph);
  }
}

TEST_CASE("a precision that a run chooses is AUTO in the job's text until it is set, which changes nothing else") {
  JobOptions job = parse(kShortest, {"training.precision=AUTO"});
  CHECK(job.training.chooses_precision);
  CHECK(job.training.precision == engine::Precision::kFloat32);
  CHECK_THAT(job.resolved_text, ContainsSubstring(" precision: AUTO\n"));
  for (const auto precision : {engine::Precision::kFloat32, engine::Precision::kBFloat16}) {
    set_precision(job, precision);
    CHECK_FALSE(job.training.chooses_precision);
    CHECK(job.training.precision == precision);
    std::string expected = parse(kShortest, {"training.precision=FP32"}).resolved_text;
    if (precision == engine::Precision::kBFloat16) expected.replace(expected.find("FP32"), 4, "BF16");
    CHECK(job.resolved_text == expected);
  }
}

TEST_CASE("valid settings that may surprise give warnings") {
  const auto warnings = [](const std::vector<std::string>& overrides) {
    std::string text;
    for (const std::string& warning : parse(std::string(kGoodJob), overrides).warnings) text += warning + "\n";
    return text;
  };
  CHECK(warnings({"synchronization.sma.central_momentum=0", "learners.per_device.fixed=1"}).empty());
  CHECK_THAT(warnings({"synchronization.sma.central_momentum=0.9", "optimizer.sgd.momentum=0.9"}),
             ContainsSubstring("learning rate shrinks"));
  CHECK_THAT(
      warnings({"learning_rate.multistep.drop={epoch: 10 factor: 0.1}"}),
      ContainsSubstring("the decay step of the learning rate at epoch 10 never happens: the job ends after 10 epochs"));
  CHECK_THAT(warnings({"learning_rate.step={epochs: 8 factor: 0.1}", "learning_rate.warm_up.epochs=2"}),
             ContainsSubstring("the decay step of the learning rate at epoch 10 never happens"));
  CHECK_THAT(
      warnings({"learning_rate.cosine.epochs=20"}),
      ContainsSubstring("the learning rate's cosine schedule ends at epoch 20, but the job ends after 10 epochs"));
  CHECK_THAT(warnings({"learning_rate.cosine={}", "learning_rate.restart={epoch: 10 epochs: 4}"}),
             ContainsSubstring("the restart of the learning rate at epoch 10 never happens: the job ends after 10"));
  CHECK_THAT(warnings({"learning_rate.cosine={}", "learning_rate.restart={epoch: 4 epochs: 4}"}),
             ContainsSubstring("the learning rate is 0 from epoch 8 on, and the job ends after 10 epochs"));
  CHECK_THAT(warnings({"learning_rate.polynomial.epochs=6"}),
             ContainsSubstring("the learning rate is 0 from epoch 6 on, and the job ends after 10 epochs"));
  CHECK_THAT(warnings({"learning_rate.exponential.factor=1e-300"}),
             ContainsSubstring("becomes too small for a float32, and is 0 from epoch 0.1"));
  CHECK_THAT(warnings({"learning_rate.multistep.drop={epoch: 4 factor: 1e-200}"}),
             ContainsSubstring("is 0 from epoch 4.00 on"));
  CHECK(warnings({"learning_rate.exponential.factor=0.9"}).empty());
  CHECK_THAT(warnings({"optimizer.exclude_from_weight_decay=BIASES"}),
             ContainsSubstring("exclude_from_weight_decay changes nothing: weight_decay is 0"));
  CHECK(warnings({"optimizer={ adamw {} exclude_from_weight_decay: BIASES }"}).empty());
  CHECK(warnings({"learning_rate.one_cycle.epochs=6", "learning_rate.warm_up.epochs=1"}).empty());
  CHECK_THAT(warnings({fmt::format("devices=cpu:{}", engine::host::allowed_cores().front())}),
             ContainsSubstring("2 learners share the 1 core of 'cpu:"));
}

}  // namespace arbalest::jobs
