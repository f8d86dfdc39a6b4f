// The zoo: what its models are made of, and which data they fit.
#include <fmt/format.h>

#include "arbalest/v1/model.pb.h"
#include "dataflow/models/model_defaults.h"
#include "dataflow/models/model_reader.h"
#include "dataflow/models/zoo/zoo.h"
#include "tests/support/catch.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::dataflow {

namespace {

const InputDescription kMnist{{1, 28, 28}, 10};

Graph build(const std::string& model, const InputDescription& input = kMnist) {
  return Graph::build(input, tests::zoo_layers(model, input));
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  const auto shapes = graph.shapes(1);
  for (const Graph::Node& node : graph.nodes()) {
    for (const ParameterSpec& spec : node.layer->parameters(Graph::input_shapes(node, shapes))) {
      count += spec.shape.elements();
    }
  }
  return count;
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
                                                        "2x50x4x4", "2x500", "2x500", "2x10", "1", "1"});
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

TEST_CASE("zoo: a multilayer perceptron has the widths that it is given") {
  CHECK(parameter_count(build("mlp {}")) == 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  CHECK(parameter_count(build("mlp { hidden: 8 }")) == 784 * 8 + 8 + 8 * 10 + 10);
}

TEST_CASE("zoo: the models follow the number of classes") {
  const InputDescription input{{3, 32, 32}, 100};
  for (const char* model : {"lenet {}", "logistic_regression {}", "mlp { hidden: 8 }"}) {
    CAPTURE(model);
    const Graph graph = build(model, input);
    CHECK(graph.shapes(1)[static_cast<std::size_t>(graph.nodes().back().inputs[0])] == engine::Shape{1, 100});
  }
}

}  // namespace arbalest::dataflow
