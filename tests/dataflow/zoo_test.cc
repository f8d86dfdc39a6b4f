// The zoo: the layers of its models, and the data they fit.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "arbalest/v1/model.pb.h"
#include "dataflow/memory/plan.h"
#include "dataflow/models/model_reader.h"
#include "dataflow/models/zoo/zoo.h"
#include "engine/backends/devices.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/zoo_layers.h"
#include "tests/support/zoo_table.h"

namespace arbalest::dataflow {

namespace {

const InputDescription kMnist = image_input({1, 28, 28}, 10);

Graph build(const std::string& model, const InputDescription& input = kMnist) {
  return Graph::build(input, tests::zoo_layers(model, input));
}

// Parses a model and fills in its defaults.
v1::Model parse(const std::string& zoo) {
  v1::Model model;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(zoo, model.mutable_zoo()));
  fill_defaults(model);
  return model;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  const auto shapes = graph.shapes(1);
  for (const Graph::Node& node : graph.nodes()) {
    for (const ParameterSpec& spec : node.layer->parameters(Graph::input_shapes(node, shapes))) {
      if (!spec.is_statistic()) count += spec.shape.elements();
    }
  }
  return count;
}

std::set<std::string> names_of_models() {
  std::set<std::string> names;
  const auto& all = *v1::Zoo::descriptor();
  for (int i = 0; i < all.field_count(); ++i) names.insert(all.field(i)->name());
  return names;
}

// Models whose layers the option `dropout` configures.
std::set<std::string> models_with_dropout() {
  std::set<std::string> names = names_of_models();
  std::erase_if(names, [](const std::string& name) {
    return v1::Zoo::descriptor()->FindFieldByName(name)->message_type()->FindFieldByName("dropout") == nullptr;
  });
  return names;
}

std::vector<std::string> shapes_of(const Graph& graph, std::int64_t batch) {
  std::vector<std::string> texts;
  for (const engine::Shape& shape : graph.shapes(batch)) texts.push_back(to_string(shape));
  return texts;
}

}  // namespace

TEST_CASE("zoo: LeNet is Caffe's") {
  const Graph graph = build("lenet {}");
  CHECK(parameter_count(graph) == 431080);
  CHECK(shapes_of(graph, 2) == std::vector<std::string>{"2x1x28x28", "2", "2x20x24x24", "2x20x12x12", "2x50x8x8",
                                                        "2x50x4x4", "2x500", "2x500", "2x10", "1", "2"});
  for (const Graph::Node& node : graph.nodes()) {
    const auto shapes = graph.shapes(1);
    const auto specs = node.layer->parameters(Graph::input_shapes(node, shapes));
    if (specs.empty()) continue;
    CHECK(specs[0].initializer.kind == Initializer::Kind::kXavier);
    CHECK(specs[1].initializer.kind == Initializer::Kind::kConstant);
  }
}

TEST_CASE("zoo: logistic regression is one dense layer that starts with zeros") {
  const Graph graph = build("logistic_regression {}");
  CHECK(parameter_count(graph) == 7850);
  CHECK(graph.nodes()[0].layer->kind() == "dense");
  const auto shapes = graph.shapes(1);
  const auto specs = graph.nodes()[0].layer->parameters(Graph::input_shapes(graph.nodes()[0], shapes));
  CHECK(specs[0].initializer.kind == Initializer::Kind::kConstant);
}

TEST_CASE("zoo: a multilayer perceptron has the given widths") {
  CHECK(parameter_count(build("mlp {}")) == 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  CHECK(parameter_count(build("mlp { hidden: 8 }")) == 784 * 8 + 8 + 8 * 10 + 10);
}

TEST_CASE("zoo: models have the published numbers of parameters") {
  std::set<std::string> names;
  for (const tests::ZooRow& row : tests::zoo_table()) {
    CAPTURE(row.name);
    names.insert(row.name);
    if (row.least_side > 0) CHECK(row.parameters.contains(parameter_count(build(row.name + " {}", row.published_on))));
  }
  CHECK(names == names_of_models());
}

TEST_CASE("zoo: variants have as many parameters as PyTorch's") {
  const InputDescription cifar = image_input({3, 32, 32}, 10);
  const InputDescription cifar100 = image_input({3, 32, 32}, 100);
  const InputDescription imagenet = image_input({3, 224, 224}, 1000);
  const InputDescription larger = image_input({3, 299, 299}, 1000);
  struct Case {
    const char* model;
    InputDescription input;
    std::int64_t parameters;
  };
  const std::vector<Case> cases{
      {"lenet { batch_norm: true }", kMnist, 431'650},
      {"alexnet { variant: GROUPED }", imagenet, 60'965'224},
      {"alexnet { variant: GROUPED }", image_input({3, 227, 227}, 1000), 60'965'224},
      {"vgg { depth: 11 }", imagenet, 132'863'336},
      {"vgg {}", imagenet, 138'357'544},
      {"vgg { depth: 19 }", imagenet, 143'667'240},
      {"vgg { depth: 11 batch_norm: true }", imagenet, 132'868'840},
      {"vgg { depth: 16 batch_norm: true }", imagenet, 138'365'992},
      {"vgg { depth: 19 batch_norm: true }", imagenet, 143'678'248},
      {"vgg { depth: 16 batch_norm: true head: CIFAR }", cifar100, 15'037'092},
      {"resnet_cifar {}", cifar, 269'722},
      {"resnet_cifar { depth: 32 }", cifar, 464'154},
      {"resnet_cifar { depth: 44 }", cifar, 658'586},
      {"resnet_cifar { depth: 56 }", cifar, 853'018},
      {"resnet_cifar { depth: 110 }", cifar, 1'727'962},
      {"resnet { depth: 18 }", imagenet, 11'689'512},
      {"resnet { depth: 34 }", imagenet, 21'797'672},
      {"resnet {}", imagenet, 25'557'032},
      {"resnet { depth: 101 }", imagenet, 44'549'160},
      {"resnet { depth: 152 }", imagenet, 60'192'808},
      {"resnet { depth: 50 version: V1 }", imagenet, 25'557'032},
      {"resnet { depth: 18 version: V2 }", imagenet, 11'687'720},
      {"resnet { depth: 34 version: V2 }", imagenet, 21'795'880},
      {"resnet { depth: 50 version: V2 }", imagenet, 25'549'352},
      {"resnet { depth: 101 version: V2 }", imagenet, 44'541'480},
      {"resnet { depth: 152 version: V2 }", imagenet, 60'185'128},
      {"inception_v3 {}", larger, 27'161'264},
      {"inception_v3 { auxiliary_head: false }", larger, 23'834'568},
      {"mobilenet_v2 {}", imagenet, 3'504'872},
      {"mobilenet_v2 { width: 0.35 }", imagenet, 1'677'128},
      {"mobilenet_v2 { width: 0.5 }", imagenet, 1'968'680},
      {"mobilenet_v2 { width: 0.75 }", imagenet, 2'636'424},
      {"mobilenet_v2 { width: 1.4 }", imagenet, 6'108'776},
  };
  for (const Case& of : cases) {
    CAPTURE(of.model);
    CHECK(parameter_count(build(of.model, of.input)) == of.parameters);
  }
}

TEST_CASE("zoo: the CPU has BF16 kernels for every model") {
  if (!tests::cpu_computes_bfloat16()) tests::skip_test("needs a processor with AVX-512");
  std::vector<std::pair<std::string, std::int64_t>> models{{"lenet { batch_norm: true }", 28},
                                                           {"alexnet { variant: GROUPED }", 224},
                                                           {"vgg { depth: 11 batch_norm: true }", 224},
                                                           {"resnet { depth: 50 version: V2 }", 224},
                                                           {"mobilenet_v2 { width: 0.35 }", 224}};
  for (const tests::ZooRow& row : tests::zoo_table()) {
    if (row.least_side > 0) models.emplace_back(row.name + " {}", std::max<std::int64_t>(row.least_side, 64));
  }
  const auto [model, side] = GENERATE_REF(from_range(models));
  CAPTURE(model);
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const Graph graph = build(model, image_input({3, side, side}, 1000));
  // A layer without a kernel would throw.
  const Plan training(graph, *device, {.batch = 2, .precision = engine::Precision::kBFloat16});
  const Plan inference(graph, *device,
                       {.batch = 3,
                        .mode = engine::OperatorMode::kInference,
                        .precision = engine::Precision::kBFloat16,
                        .parameters = &training.parameters()});
  CHECK(training.reads_low_precision_weights());
  CHECK(inference.parameters().elements() == training.parameters().elements());
}

TEST_CASE("zoo: the stride of a bottleneck is where its version has it") {
  const InputDescription imagenet = image_input({3, 224, 224}, 1000);
  const auto height_of = [&](const Graph& graph, const std::string& layer) {
    const auto node = std::ranges::find(graph.nodes(), layer, &Graph::Node::name);
    REQUIRE(node != graph.nodes().end());
    return graph.shapes(1)[static_cast<std::size_t>(node->output)][2];
  };
  CHECK(height_of(build("resnet { version: V1 }", imagenet), "layer2.0.conv1") == 28);
  CHECK(height_of(build("resnet { version: V1_5 }", imagenet), "layer2.0.conv1") == 56);
  CHECK(height_of(build("resnet { version: V1_5 }", imagenet), "layer2.0.conv2") == 28);
  CHECK(height_of(build("resnet { version: V2 }", imagenet), "layer2.0.conv1") == 56);
}

TEST_CASE("zoo: a dropout of 0 leaves the layer out") {
  const InputDescription input = image_input({3, 96, 96}, 10);
  const auto dropouts = [&](const std::string& model) {
    return std::ranges::count_if(build(model, input).nodes(),
                                 [](const Graph::Node& node) { return node.layer->kind() == "dropout"; });
  };
  for (const std::string& model : models_with_dropout()) {
    CAPTURE(model);
    const std::string common = model == "inception_v3" ? "auxiliary_head: false " : "";
    CHECK(dropouts(model + " { " + common + "}") == (model == "alexnet" || model == "vgg" ? 2 : 1));
    CHECK(dropouts(model + " { " + common + "dropout: 0 }") == 0);
  }
}

TEST_CASE("zoo: images smaller than the model allows are refused") {
  const auto expand_for = [](const std::string& model, std::int64_t side, FieldIssues& issues) {
    return expand(parse(model).zoo(), image_input({3, side, side}, 10), issues);
  };
  std::map<std::string, std::int64_t> least{{"lenet { batch_norm: true }", 16},
                                            {"alexnet { variant: GROUPED }", 63},
                                            {"vgg { depth: 11 }", 32},
                                            {"resnet { version: V2 }", 1},
                                            {"inception_v3 { auxiliary_head: false }", 75}};
  for (const tests::ZooRow& row : tests::zoo_table()) {
    if (row.least_side > 0) least.emplace(row.name + " {}", row.least_side);
  }
  for (const auto& [model, side] : least) {
    CAPTURE(model, side);
    FieldIssues issues;
    CHECK_FALSE(expand_for(model, side, issues).empty());
    CHECK(issues.empty());
    CHECK_NOTHROW(build(model, image_input({3, side, side}, 10)));
    if (side == 1) continue;
    CHECK(expand_for(model, side - 1, issues).empty());
    REQUIRE(issues.all().size() == 1);
    const std::string name = model.substr(0, model.find(' '));
    CHECK(issues.all()[0].path == "zoo." + name);
    CHECK(issues.all()[0].message ==
          fmt::format("{0} needs images of {1}x{1} pixels or larger; the data has images of 3x{2}x{2}", name, side,
                      side - 1));
  }
}

TEST_CASE("zoo: bad options are refused") {
  const auto refusal = [](const std::string& model) {
    FieldIssues issues;
    CHECK(read_model(parse(model), image_input({3, 299, 299}, 10), issues).empty());
    REQUIRE(issues.all().size() == 1);
    return issues.all()[0].path + " | " + issues.all()[0].message;
  };
  CHECK(refusal("vgg { depth: 13 }") == "zoo.vgg.depth | depth must be one of 11, 16, 19, not 13");
  CHECK(refusal("resnet { depth: 20 }") == "zoo.resnet.depth | depth must be one of 18, 34, 50, 101, 152, not 20");
  CHECK(refusal("resnet_cifar { depth: 18 }") ==
        "zoo.resnet_cifar.depth | depth must be one of 20, 32, 44, 56, 110, not 18");
  CHECK(refusal("mlp { hidden: [3, 0] }") == "zoo.mlp.hidden[1] | hidden[1] must be in [1, 1048576], not 0");
  CHECK(refusal("mobilenet_v2 { width: 0 }") == "zoo.mobilenet_v2.width | width must be in (0, 10], not 0");
  for (const std::string& model : models_with_dropout()) {
    CHECK(refusal(fmt::format("{} {{ dropout: 1 }}", model)) ==
          fmt::format("zoo.{}.dropout | dropout must be in [0, 1), not 1", model));
  }
}

TEST_CASE("zoo: the models follow the number of classes") {
  const InputDescription input = image_input({3, 32, 32}, 100);
  for (const char* model : {"lenet {}", "logistic_regression {}", "mlp { hidden: 8 }", "resnet_cifar {}"}) {
    CAPTURE(model);
    const Graph graph = build(model, input);
    CHECK(graph.shapes(1)[static_cast<std::size_t>(graph.nodes().back().inputs[0])] == engine::Shape{1, 100});
  }
}

}  // namespace arbalest::dataflow
