// Models for predictions compute what the same models compute in evaluation, but for the last bits.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "dataflow/folding/batch_norm_folding.h"
#include "dataflow/fusion.h"
#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/parameter_rules.h"
#include "engine/backends/devices.h"
#include "learners/inference_runner.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

using dataflow::BatchNormFolding;
using dataflow::Graph;
using dataflow::NamedTensor;

Graph zoo(const std::string& model, const engine::Shape& image) {
  const dataflow::InputDescription input = dataflow::image_input(image, 10);
  return Graph::build(input, zoo_layers(model, input));
}

// Values as large as those of trained models, running statistics included.
std::vector<NamedTensor> random_model(const Graph& graph) {
  std::mt19937_64 random(5);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, spec] : dataflow::named_parameters(graph)) {
    const bool is_matrix = spec.shape.rank() > 1;
    const bool is_positive = spec.name == "running_var" || (spec.name == "weight" && !is_matrix);
    const double width = is_matrix ? std::sqrt(3.0 / static_cast<double>(spec.fan.in)) : 0.3;
    std::uniform_real_distribution<double> uniform(-width, width);
    NamedTensor& tensor = tensors.emplace_back(NamedTensor{name, spec.shape, {}});
    for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
      tensor.values.push_back(static_cast<float>((is_positive ? 1.0 : 0.0) + uniform(random)));
    }
  }
  return tensors;
}

std::vector<float> output_of(const Graph& graph, const std::vector<NamedTensor>& model, const std::string& output,
                             std::int64_t batch, int threads, bool prediction) {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  learners::InferenceModel loaded(graph, *device,
                                  {.batch = batch, .threads = threads, .output = output, .prediction = prediction});
  loaded.load(model);
  learners::InferenceRunner runner(loaded);
  const dataflow::BatchMemory memory(graph.input(), batch, *device);
  const std::vector<float> images = random_floats(batch * graph.input().image().elements(), 3);
  std::ranges::copy(images, memory.batch().front().as<float>().begin());
  std::ranges::fill(memory.batch().back().bytes(), std::byte{0});
  const std::span<const float> values = runner.run({.tensors = memory.batch(), .examples = 1}).output;
  return {values.begin(), values.end()};
}

// The layers of a model for predictions, whose output is the logits.
Graph prepared(const Graph& graph, const std::string& output) {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const learners::InferenceModel loaded(graph, *device,
                                        {.batch = 1, .threads = 1, .output = output, .prediction = true});
  return loaded.plan().graph();
}

// The layer that the loss compares with the labels.
std::string logits_of(const Graph& graph) {
  const auto loss = std::ranges::find(graph.nodes(), dataflow::LayerRole::kLoss,
                                      [](const Graph::Node& node) { return node.layer->role(); });
  return std::ranges::find(graph.nodes(), loss->inputs[0], &Graph::Node::output)->name;
}

int count(const Graph& graph, const std::string& kind) {
  return static_cast<int>(
      std::ranges::count_if(graph.nodes(), [&](const Graph::Node& node) { return node.layer->kind() == kind; }));
}

struct Case {
  const char* model;
  engine::Shape image;
  int left;  // batch norms that do not follow a convolution
};
const Case kModels[] = {{"lenet {}", {1, 28, 28}, 0},
                        {"lenet { batch_norm: true }", {1, 28, 28}, 1},
                        {"resnet_cifar { depth: 20 }", {3, 32, 32}, 0},
                        {"resnet { depth: 18 }", {3, 32, 40}, 0},
                        {"mobilenet_v1 {}", {3, 32, 32}, 0}};

}  // namespace

TEST_CASE("a model for predictions computes the same output, without batch norm behind convolutions", "[training]") {
  for (const Case& of : kModels) {
    CAPTURE(of.model);
    const Graph graph = zoo(of.model, of.image);
    CHECK(count(prepared(graph, logits_of(graph)), "batch_norm") == of.left);
    const std::vector<NamedTensor> model = random_model(graph);
    for (const auto& [batch, threads] : {std::pair(1, 2), std::pair(16, 1)}) {
      CAPTURE(batch, threads);
      const std::vector<float> expected = output_of(graph, model, logits_of(graph), batch, threads, false);
      const std::vector<double> doubles(expected.begin(), expected.end());
      CHECK(relative_error(output_of(graph, model, logits_of(graph), batch, threads, true), doubles) < 1e-5);
    }
  }
}

TEST_CASE("folding a batch norm: the numbers, and the names of what is left", "[training]") {
  const Graph graph = zoo("resnet_cifar { depth: 20 }", {3, 32, 32});
  std::vector<NamedTensor> model = random_model(graph);
  const BatchNormFolding folding(graph);
  std::map<std::string, NamedTensor> folded;
  for (NamedTensor& tensor : folding.fold(model)) folded[tensor.name] = tensor;
  for (const auto& [name, spec] : dataflow::named_parameters(folding.graph())) {
    CAPTURE(name);
    REQUIRE(folded.contains(name));
    CHECK(folded[name].shape == spec.shape);
  }
  CHECK(folded.size() == dataflow::named_parameters(folding.graph()).size());
  const auto value = [&](const std::string& name, std::size_t i) {
    return static_cast<double>(std::ranges::find(model, name, &NamedTensor::name)->values[i]);
  };
  // the second filter of the first convolution
  const double factor = value("bn1.weight", 1) / std::sqrt(value("bn1.running_var", 1) + 1e-5);
  CHECK(folded["conv1.weight"].values[27] == Approx(value("conv1.weight", 27) * factor));
  CHECK(folded["conv1.bias"].values[1] == Approx(value("bn1.bias", 1) - value("bn1.running_mean", 1) * factor));

  std::erase_if(model, [](const NamedTensor& tensor) { return tensor.name == "bn1.running_mean"; });
  CHECK_THROWS_WITH(folding.fold(model), "parameter 'bn1.running_mean' is missing");
}

TEST_CASE("a batch norm whose output is asked for is not folded", "[training]") {
  const Graph graph = zoo("lenet { batch_norm: true }", {1, 28, 28});
  const std::vector<NamedTensor> model = random_model(graph);
  const auto& nodes = graph.nodes();
  const auto found = std::ranges::find(nodes, "batch_norm", [](const Graph::Node& node) { return node.layer->kind(); });
  REQUIRE(found != nodes.end());
  const std::vector<float> expected = output_of(graph, model, found->name, 2, 1, false);
  const std::vector<double> doubles(expected.begin(), expected.end());
  CHECK(relative_error(output_of(graph, model, found->name, 2, 1, true), doubles) < 1e-6);
}

}  // namespace arbalest::tests
