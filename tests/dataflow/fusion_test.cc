// Tests which layers are fused, and that fused layers give the same results.
#include "dataflow/fusion.h"

#include <string>
#include <tuple>
#include <vector>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/outputs/classification.h"
#include "tests/support/catch.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

using namespace dataflow;
using engine::ActivationFunction;
using engine::ActivationKind;

std::shared_ptr<const Layer> dense(std::int64_t units) {
  return std::make_shared<DenseLayer>(DenseLayer::Options{units});
}
std::shared_ptr<const Layer> activation(const ActivationFunction& f) { return std::make_shared<ActivationLayer>(f); }

Graph build(const std::vector<LayerDescription>& hidden, const std::string& logits) {
  std::vector<LayerDescription> layers = hidden;
  layers.push_back({"loss", {logits, "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()});
  return Graph::build(image_input({1, 4, 4}, 3), layers);
}

std::vector<std::string> labels(const Graph& graph) {
  std::vector<std::string> labels;
  for (const Graph::Node& node : graph.nodes()) labels.push_back(node.label);
  return labels;
}

TEST_CASE("fusion: an activation is fused into its input layer if nothing else reads that layer") {
  const Graph lenet_graph = Graph::build(image_input({1, 28, 28}, 10), arbalest::tests::lenet());
  const Graph fused = fuse(lenet_graph);
  CHECK(labels(fused) ==
        std::vector<std::string>{"conv1", "pool1", "conv2", "pool2", "dense1+relu1", "logits", "loss+accuracy"});
  const Graph::Node& both = fused.nodes()[4];
  CHECK(both.name == "dense1");  // the name of its parameters
  const std::vector<engine::Layout> input{{{2, 800}, engine::DType::kFloat32, 6400, nullptr}};
  CHECK(std::get<engine::DenseSpec>(both.layer->operator_spec(input, 0)).activation == ActivationKind::kRelu);
  CHECK(fused.nodes()[5].inputs == std::vector<int>{both.output});
  for (std::size_t n = 0; n < fused.nodes().size(); ++n) CHECK(fused.nodes()[n].output == static_cast<int>(n) + 2);
  const auto counts = lenet_graph.shapes(2).back()[0];  // of the accuracy, which follow the loss now
  CHECK(fused.shapes(2).back() == engine::Shape{1 + counts});

  std::int64_t flops[2] = {0, 0};
  for (const Graph* of : {&lenet_graph, &fused}) {
    for (const Graph::Node& node : of->nodes()) {
      flops[of == &fused ? 1 : 0] += node.layer->forward_flops(Graph::input_shapes(node, of->shapes(2)));
    }
  }
  CHECK(flops[0] == flops[1]);
}

TEST_CASE("fusion: a second activation in a row, and an activation of the image, are not fused") {
  const Graph graph = fuse(build({{"tanh0", {"image"}, activation(ActivationKind::kTanh)},
                                  {"hidden", {"tanh0"}, dense(5)},
                                  {"relu", {"hidden"}, activation(ActivationKind::kRelu)},
                                  {"tanh", {"relu"}, activation(ActivationKind::kTanh)},
                                  {"logits", {"tanh"}, dense(3)}},
                                 "logits"));
  CHECK(labels(graph) == std::vector<std::string>{"tanh0", "hidden+relu", "tanh", "logits", "loss+accuracy"});
}

TEST_CASE("fusion: batch norm and add are fused with ReLU only, not with other activations") {
  const auto leaky = activation(ActivationFunction(ActivationKind::kLeakyRelu, 0.25F));
  const auto norm = std::make_shared<BatchNormLayer>(BatchNormLayer::Options{});
  const Graph graph = fuse(build({{"hidden", {"image"}, dense(5)},
                                  {"norm1", {"hidden"}, norm},
                                  {"relu1", {"norm1"}, activation(ActivationKind::kRelu)},
                                  {"norm2", {"relu1"}, norm},
                                  {"tanh2", {"norm2"}, activation(ActivationKind::kTanh)},
                                  {"norm3", {"tanh2"}, norm},
                                  {"leaky3", {"norm3"}, leaky},
                                  {"sum", {"leaky3", "tanh2"}, std::make_shared<AddLayer>()},
                                  {"leaky4", {"sum"}, leaky},
                                  {"norm5", {"leaky4"}, norm},
                                  {"clipped5", {"norm5"}, activation(ActivationKind::kRelu6)},
                                  {"hidden6", {"clipped5"}, dense(5)},
                                  {"relu6", {"hidden6"}, activation(ActivationKind::kRelu6)},
                                  {"hidden7", {"relu6"}, dense(5)},
                                  {"swish7", {"hidden7"}, activation(ActivationKind::kHardSwish)},
                                  {"logits", {"swish7"}, dense(3)}},
                                 "logits"));
  CHECK(labels(graph) == std::vector<std::string>{"hidden", "norm1+relu1", "norm2", "tanh2", "norm3", "leaky3", "sum",
                                                  "leaky4", "norm5", "clipped5", "hidden6+relu6", "hidden7", "swish7",
                                                  "logits", "loss+accuracy"});
  const std::vector<engine::Layout> input{{{2, 5}, engine::DType::kFloat32, 40, nullptr}};
  CHECK(std::get<engine::BatchNormSpec>(graph.nodes()[1].layer->operator_spec(input, 0)).relu);
  CHECK_FALSE(std::get<engine::BatchNormSpec>(graph.nodes()[2].layer->operator_spec(input, 0)).relu);
}

// The end of a residual block. `shortcut` is the last layer of its shortcut.
Graph residual(const std::shared_ptr<const Layer>& shortcut, bool relu) {
  const auto norm = std::make_shared<BatchNormLayer>(BatchNormLayer::Options{});
  std::vector<LayerDescription> layers{{"before", {"image"}, dense(5)},
                                       {"hidden", {"before"}, dense(5)},
                                       {"norm", {"hidden"}, norm},
                                       {"shortcut", {"before"}, shortcut},
                                       {"sum", {"norm", "shortcut"}, std::make_shared<AddLayer>()}};
  if (relu) layers.push_back({"relu", {"sum"}, activation(ActivationKind::kRelu)});
  layers.push_back({"logits", {layers.back().name}, dense(3)});
  return build(layers, "logits");
}

TEST_CASE("fusion: a sum and its ReLU are fused into the batch norm if nothing else reads the batch norm") {
  const Graph graph = fuse(residual(activation(ActivationKind::kTanh), true));
  CHECK(labels(graph) ==
        std::vector<std::string>{"before", "hidden", "shortcut", "norm+sum+relu", "logits", "loss+accuracy"});
  const Graph::Node& both = graph.nodes()[3];
  CHECK(both.name == "norm");  // the name of its parameters
  CHECK(both.inputs == std::vector<int>{graph.nodes()[1].output, graph.nodes()[2].output});
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) CHECK(graph.nodes()[n].output == static_cast<int>(n) + 2);
  const std::vector<engine::Layout> inputs{{{2, 5}, engine::DType::kFloat32, 40, nullptr},
                                           {{2, 5}, engine::DType::kFloat32, 64, nullptr}};
  const auto spec = std::get<engine::BatchNormSpec>(both.layer->operator_spec(inputs, 0));
  CHECK(spec.relu);
  CHECK(spec.addend == inputs[1]);
}

TEST_CASE("fusion: a sum of two batch norms is fused into the later one") {
  const Graph graph = fuse(residual(std::make_shared<BatchNormLayer>(BatchNormLayer::Options{}), true));
  CHECK(labels(graph) ==
        std::vector<std::string>{"before", "hidden", "norm", "shortcut+sum+relu", "logits", "loss+accuracy"});
  CHECK(graph.nodes()[3].inputs == std::vector<int>{graph.nodes()[0].output, graph.nodes()[2].output});
}

TEST_CASE("fusion: the order of parameters does not change") {
  const Graph graph = residual(dense(5), true);
  CHECK(labels(fuse(graph)) ==
        std::vector<std::string>{"before", "hidden", "norm", "shortcut", "sum+relu", "logits", "loss+accuracy"});
}

TEST_CASE("fusion: batch norm does not take a sum without ReLU, nor a sum of an output that others read") {
  CHECK(labels(fuse(residual(activation(ActivationKind::kTanh), false))) ==
        std::vector<std::string>{"before", "hidden", "norm", "shortcut", "sum", "logits", "loss+accuracy"});
  const auto norm = std::make_shared<BatchNormLayer>(BatchNormLayer::Options{});
  const Graph twice = fuse(build({{"hidden", {"image"}, dense(5)},
                                  {"norm", {"hidden"}, norm},
                                  {"tanh", {"norm"}, activation(ActivationKind::kTanh)},
                                  {"sum", {"norm", "tanh"}, std::make_shared<AddLayer>()},
                                  {"relu", {"sum"}, activation(ActivationKind::kRelu)},
                                  {"logits", {"relu"}, dense(3)}},
                                 "logits"));
  CHECK(labels(twice) == std::vector<std::string>{"hidden", "norm", "tanh", "sum+relu", "logits", "loss+accuracy"});
}

TEST_CASE("fusion: a fused activation keeps its slope, and GELU, whose derivative needs its input, is not fused") {
  const ActivationFunction leaky(ActivationKind::kLeakyRelu, 0.25F);
  const Graph graph = fuse(build({{"hidden", {"image"}, dense(5)},
                                  {"leaky", {"hidden"}, activation(leaky)},
                                  {"wide", {"leaky"}, dense(7)},
                                  {"gelu", {"wide"}, activation(ActivationKind::kGelu)},
                                  {"logits", {"gelu"}, dense(3)}},
                                 "logits"));
  CHECK(labels(graph) == std::vector<std::string>{"hidden+leaky", "wide", "gelu", "logits", "loss+accuracy"});
  const std::vector<engine::Layout> input{{{2, 16}, engine::DType::kFloat32, 128, nullptr}};
  CHECK(std::get<engine::DenseSpec>(graph.nodes()[0].layer->operator_spec(input, 0)).activation == leaky);
}

TEST_CASE("fusion: an output that other layers read is not overwritten") {
  // Accuracy and loss both read the logits, so the sigmoid must not overwrite them.
  const Graph graph = build({{"logits", {"image"}, dense(3)},
                             {"squashed", {"logits"}, activation(ActivationKind::kSigmoid)},
                             {"accuracy", {"logits", "label"}, std::make_shared<AccuracyLayer>()}},
                            "squashed");
  CHECK(labels(fuse(graph)) == std::vector<std::string>{"logits", "squashed", "accuracy", "loss"});
}

TEST_CASE("fusion: the main loss counts what the metric of its own logits counts") {
  const std::vector<LayerDescription> hidden{
      {"trunk", {"image"}, dense(3)},
      {"side_loss", {"trunk", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()},
      {"logits", {"trunk"}, dense(3)},
      {"score", {"logits", "label"}, std::make_shared<AccuracyLayer>(std::vector<std::int32_t>{2})}};
  const Graph graph = fuse(build(hidden, "logits"));
  CHECK(labels(graph) == std::vector<std::string>{"trunk", "side_loss", "logits", "loss+score"});
  const std::vector<engine::Layout> inputs{{{2, 3}, engine::DType::kFloat32, 24, nullptr},
                                           {{2}, engine::DType::kInt32, 8, nullptr}};
  const auto spec_of = [&](int node) {
    const Graph::Node& of = graph.nodes()[static_cast<std::size_t>(node)];
    return std::get<engine::SoftmaxCrossEntropySpec>(of.layer->operator_spec(inputs, 0));
  };
  CHECK(spec_of(1).top.empty());
  CHECK(spec_of(3).top == std::vector<std::int32_t>{1, 2});
  CHECK(graph.shapes(4).back() == engine::Shape{3});
  CHECK(graph.metrics().size() == 3);
  // Who reads the metric's output reads the loss's.
  CHECK(fuse(build(hidden, "logits"), "score").kept == "loss");
  // A metric of other logits stays a layer.
  CHECK(labels(fuse(build({{"trunk", {"image"}, dense(3)},
                           {"score", {"trunk", "label"}, std::make_shared<AccuracyLayer>()},
                           {"logits", {"trunk"}, dense(3)}},
                          "logits"))) == std::vector<std::string>{"trunk", "score", "logits", "loss"});
}

TEST_CASE("fusion: an output that the caller reads stays a tensor, and is found under the name of its fused node") {
  const Graph graph = residual(activation(ActivationKind::kTanh), true);
  // The layers that the caller reads, the node that computes the output then, and the nodes.
  const std::tuple<const char*, const char*, std::vector<std::string>> cases[] = {
      {"relu", "norm", {"before", "hidden", "shortcut", "norm+sum+relu", "logits", "loss+accuracy"}},
      {"sum", "sum", {"before", "hidden", "norm", "shortcut", "sum", "relu", "logits", "loss+accuracy"}},
      {"norm", "norm", {"before", "hidden", "norm", "shortcut", "sum+relu", "logits", "loss+accuracy"}},
      {"shortcut", "shortcut", {"before", "hidden", "shortcut", "norm+sum+relu", "logits", "loss+accuracy"}},
      {"logits", "logits", {"before", "hidden", "shortcut", "norm+sum+relu", "logits", "loss+accuracy"}}};
  for (const auto& [read, node, expected] : cases) {
    CAPTURE(read);
    const FusedGraph fused = fuse(graph, read);
    CHECK(fused.kept == node);
    CHECK(labels(fused.graph) == expected);
  }
  CHECK(fuse(graph, "no such layer").kept == "no such layer");
  CHECK(labels(fuse(graph, "no such layer").graph) == labels(fuse(graph)));
}

TEST_CASE("fusion: dropout keeps its random key") {
  const Graph graph = build({{"hidden", {"image"}, dense(5)},
                             {"relu", {"hidden"}, activation(ActivationKind::kRelu)},
                             {"drop", {"relu"}, std::make_shared<DropoutLayer>(0.5F)},
                             {"logits", {"drop"}, dense(3)}},
                            "logits");
  const Graph fused = fuse(graph);
  REQUIRE(fused.nodes()[1].name == "drop");
  CHECK(fused.nodes()[1].key == graph.nodes()[2].key);
}

}  // namespace
}  // namespace arbalest::tests
