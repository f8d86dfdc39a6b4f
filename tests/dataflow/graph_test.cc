// Graph: the order of layers, their shapes, and the errors for layers that do not fit together.
#include "dataflow/graph.h"

#include "dataflow/autodiff.h"
#include "dataflow/layers/activation.h"
#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/flatten.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/images/padded_shortcut.h"
#include "dataflow/layers/images/pool2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "tests/support/catch.h"
#include "tests/support/zoo_layers.h"

namespace {

using namespace arbalest::dataflow;
using arbalest::engine::Shape;

const InputDescription kInput = image_input({1, 8, 8}, 3);

std::shared_ptr<const Layer> dense(std::int64_t units) {
  DenseLayer::Options options;
  options.units = units;
  return std::make_shared<DenseLayer>(options);
}

std::shared_ptr<const Layer> conv(std::int64_t filters, std::int64_t kernel) {
  Conv2dLayer::Options options;
  options.filters = filters;
  options.window.kernel = {kernel, kernel};
  return std::make_shared<Conv2dLayer>(options);
}

std::shared_ptr<const Layer> relu() {
  return std::make_shared<ActivationLayer>(arbalest::engine::ActivationKind::kRelu);
}

const auto kLoss = std::make_shared<SoftmaxCrossEntropyLayer>();

std::vector<GraphIssue> issues_of(const std::vector<LayerDescription>& layers) {
  try {
    Graph::build(kInput, layers);
  } catch (const GraphError& error) {
    CHECK(error.kind() == arbalest::engine::ErrorKind::kInvalidJob);
    return error.issues();
  }
  return {};
}

// Expects exactly one issue, at this layer and input, whose message contains `words`.
void check_issue(const std::vector<LayerDescription>& layers, int layer, int input, const std::string& words) {
  const std::vector<GraphIssue> issues = issues_of(layers);
  CAPTURE(words);
  REQUIRE(issues.size() == 1);
  CHECK(issues[0].layer == layer);
  CHECK(issues[0].input == input);
  CHECK_THAT(issues[0].message, ContainsSubstring(words));
}

}  // namespace

TEST_CASE("layers are sorted after their inputs, and shapes follow the batch size") {
  const Graph graph = Graph::build(kInput, {{"loss", {"logits", "label"}, kLoss},
                                            {"logits", {"relu"}, dense(3)},
                                            {"relu", {"conv"}, relu()},
                                            {"conv", {"image"}, conv(4, 3)}});
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) names.push_back(node.name);
  CHECK(names == std::vector<std::string>{"conv", "relu", "logits", "loss", "accuracy"});
  const std::vector<Shape> shapes = graph.shapes(5);
  CHECK(shapes[0] == Shape{5, 1, 8, 8});
  CHECK(shapes[2] == Shape{5, 4, 6, 6});
  CHECK(shapes[4] == Shape{5, 3});
}

TEST_CASE("backward is derived from the forward graph") {
  const Graph graph = Graph::build(kInput, {{"shape", {"image"}, std::make_shared<FlattenLayer>()},
                                            {"hidden", {"shape"}, dense(5)},
                                            {"relu", {"hidden"}, relu()},
                                            {"logits", {"relu"}, dense(3)},
                                            {"loss", {"logits", "label"}, kLoss},
                                            {"right", {"logits", "label"}, std::make_shared<AccuracyLayer>()}});
  const Backward backward = derive_backward(graph);
  // Layers before the first parameter need no gradient, and metrics have none.
  CHECK(backward.node == std::vector<bool>{false, true, true, true, true, false});
  CHECK(backward.tensor_gradient == std::vector<bool>{false, false, false, true, true, true, false, false});
}

TEST_CASE("an error names the layer that does not fit") {
  const LayerDescription logits{"logits", {"image"}, dense(3)};
  const LayerDescription loss{"loss", {"logits", "label"}, kLoss};
  check_issue({}, -1, -1, "no layers");
  check_issue({{"logits", {"imag"}, dense(3)}, loss}, 0, 0, "did you mean 'image'?");
  check_issue({logits, loss, {"logits", {"image"}, dense(3)}}, 2, -1, "another layer has this name");
  check_issue({{"", {"image"}, dense(3)}, logits, loss}, 0, -1, "layer 1 has no name");
  check_issue({{"image", {"image"}, dense(3)}, logits, loss}, 0, -1, "belongs to the model's input");
  check_issue({{"logits", {"image", "label"}, dense(3)}, loss}, 0, -1, "reads 1 input, not 2");
  check_issue({{"logits", {"label"}, dense(3)}, loss}, 0, -1, "\"label\"");
  check_issue({{"logits", {"image"}, dense(4)}, loss}, 0, -1,
              "layer 'logits' (dense): gives 'loss' 4 logits per example, but the data has 3 classes; write units: 3");
  check_issue({{"conv", {"image"}, conv(3, 9)}, {"logits", {"conv"}, dense(3)}, loss}, 0, -1, "does not fit");
  check_issue({{"flat", {"image"}, dense(3)}, {"conv", {"flat"}, conv(3, 1)}, {"logits", {"conv"}, dense(3)}, loss}, 1,
              -1, "needs images");
  check_issue({{"logits", {"image"}, conv(3, 1)}, loss}, 1, -1, "one logit per class");
  check_issue({logits, loss, {"spare", {"image"}, dense(2)}}, 2, -1, "nobody reads its output");
  check_issue({logits, {"right", {"logits", "label"}, std::make_shared<AccuracyLayer>()}}, -1, -1, "no loss");
}

TEST_CASE("add and concat accept inputs of matching shapes only") {
  const LayerDescription loss{"loss", {"logits", "label"}, kLoss};
  const auto add = std::make_shared<AddLayer>();
  const auto concat = std::make_shared<ConcatLayer>();
  const auto with = [&](const LayerDescription& join) {
    return std::vector<LayerDescription>{
        {"a", {"image"}, conv(4, 3)}, {"b", {"image"}, conv(2, 3)}, join, {"logits", {join.name}, dense(3)}, loss};
  };
  CHECK(Graph::build(kInput, with({"join", {"a", "b", "a"}, concat})).shapes(5)[4] == Shape{5, 10, 6, 6});
  check_issue(with({"join", {"a", "b"}, add}), 2, -1, "adds tensors of one shape, not 1x4x6x6 and 1x2x6x6");
  check_issue(with({"join", {"a", "b", "a"}, add}), 2, -1, "add reads 2 inputs, not 3");
  check_issue(with({"join", {"a", "b", "image"}, concat}), 2, -1, "not 1x4x6x6 and 1x1x8x8 per example");
  check_issue({{"join", {"image"}, concat}, {"logits", {"join"}, dense(3)}, loss}, 0, -1,
              "reads 2 or more inputs, not 1");
  check_issue(
      {{"flat", {"image"}, dense(4)}, {"join", {"flat", "image"}, concat}, {"logits", {"join"}, dense(3)}, loss}, 1, -1,
      "not 1x4 and 1x1x8x8 per example");
  const auto shortcut = [](std::int64_t channels) { return std::make_shared<PaddedShortcutLayer>(channels, 3); };
  const Graph graph = Graph::build(kInput, {{"pad", {"image"}, shortcut(5)}, {"logits", {"pad"}, dense(3)}, loss});
  CHECK(graph.shapes(2)[2] == Shape{2, 5, 3, 3});
  check_issue({{"a", {"image"}, conv(4, 3)}, {"pad", {"a"}, shortcut(3)}, {"logits", {"pad"}, dense(3)}, loss}, 1, -1,
              "channels: 3 is fewer than the input's 4");
}

TEST_CASE("the last of several losses is the main loss, and accuracy belongs to it") {
  const Graph graph = Graph::build(kInput, {{"trunk", {"image"}, dense(5)},
                                            {"side", {"trunk"}, dense(4)},
                                            {"side_logits", {"side"}, dense(3)},
                                            {"side_loss", {"side_logits", "label"}, kLoss},
                                            {"loss", {"logits", "label"}, kLoss},
                                            {"logits", {"trunk"}, dense(3)}});
  REQUIRE(graph.nodes().size() == 7);
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) {
    CHECK(node.training_only == (node.name == "side_loss"));
    names.push_back(node.name);
  }
  REQUIRE(names == std::vector<std::string>{"trunk", "side", "side_logits", "side_loss", "logits", "loss", "accuracy"});
  CHECK(graph.nodes().back().inputs == graph.nodes()[5].inputs);
  CHECK(needed_at_inference(graph) == std::vector<bool>{true, false, false, false, true, true, true});
  CHECK(derive_backward(graph).node == std::vector<bool>{true, true, true, true, true, true, false});
}

TEST_CASE("each cycle is reported once, without the layers that only read from it") {
  const std::vector<GraphIssue> issues = issues_of({{"reader", {"a"}, relu()},
                                                    {"a", {"b"}, relu()},
                                                    {"b", {"c"}, relu()},
                                                    {"c", {"a"}, relu()},
                                                    {"own", {"own"}, relu()},
                                                    {"logits", {"reader"}, dense(3)},
                                                    {"loss", {"logits", "label"}, kLoss}});
  REQUIRE(issues.size() == 2);
  CHECK(issues[0].layer == 1);
  CHECK(issues[0].message == "layers form a cycle: 'a' reads 'b' reads 'c' reads 'a'");
  CHECK(issues[1].message == "layers form a cycle: 'own' reads 'own'");
}

TEST_CASE("an error hides only errors that follow from it") {
  const auto accuracy = std::make_shared<AccuracyLayer>();
  const std::vector<GraphIssue> issues = issues_of({{"a", {"imag"}, dense(3)},
                                                    {"a", {"image", "label"}, relu()},
                                                    {"b", {"c"}, relu()},
                                                    {"c", {"b"}, relu()},
                                                    {"conv", {"image"}, conv(3, 9)},
                                                    {"unknown", {"imagf"}, nullptr},
                                                    {"behind", {"unknown"}, conv(3, 9)},
                                                    {"logits", {"a"}, dense(4)},
                                                    {"loss", {"logits", "label"}, kLoss},
                                                    {"right", {"logits", "label"}, accuracy},
                                                    {"again", {"logits", "label"}, accuracy}});
  std::vector<int> layers;
  for (const GraphIssue& issue : issues) layers.push_back(issue.layer);
  CHECK(layers == std::vector<int>{1, 0, 1, 5, 2, 4, 10});
}

TEST_CASE("a shape error does not hide the error for an output that nobody reads") {
  const std::vector<GraphIssue> issues = issues_of({{"conv", {"image"}, conv(3, 9)},
                                                    {"logits", {"conv"}, dense(3)},
                                                    {"other", {"image"}, conv(3, 10)},
                                                    {"more", {"other"}, dense(3)},
                                                    {"loss", {"logits", "label"}, kLoss}});
  std::vector<int> layers;
  for (const GraphIssue& issue : issues) layers.push_back(issue.layer);
  CHECK(layers == std::vector<int>{0, 2, 3});
}

TEST_CASE("reading a result layer gives one error only") {
  check_issue({{"logits", {"image"}, dense(3)},
               {"loss", {"logits", "label"}, kLoss},
               {"conv", {"loss"}, conv(3, 1)},
               {"other", {"conv", "label"}, std::make_shared<AccuracyLayer>()}},
              1, -1, "is a result");
}

TEST_CASE("a layer with invalid options is still checked against its neighbors, and the graph is not built") {
  const LayerDescription loss{"loss", {"logits", "label"}, kLoss};
  check_issue({{"logits", {"image", "image"}, dense(0), false}, loss}, 0, -1, "reads 1 input, not 2");
  check_issue({{"logits", {"label"}, dense(0), false}, loss}, 0, -1, "\"label\"");
  check_issue({{"logits", {"image"}, dense(3)}, {"spare", {"image"}, dense(0), false}, loss}, 1, -1, "nobody reads");
  // Graph reports no issue here: the caller has reported the layer's own error, and a layer without kind could be the
  // loss.
  CHECK_THROWS_AS(Graph::build(kInput, {{"logits", {"image"}, dense(0), false}, loss}), GraphError);
  CHECK_THROWS_AS(Graph::build(kInput, {{"logits", {"image"}, dense(3)}, {"loss", {"logits", "label"}, nullptr}}),
                  GraphError);
  CHECK(issues_of({{"logits", {"image"}, dense(0), false}, loss}).empty());
  CHECK(issues_of({{"logits", {"image"}, dense(3)}, {"loss", {"logits", "label"}, nullptr}}).empty());
}

TEST_CASE("a model that trains nothing is refused") {
  const LayerDescription flat{"flat", {"image"}, std::make_shared<FlattenLayer>()};
  const LayerDescription loss{"loss", {"flat", "label"}, kLoss};
  const InputDescription three_features = image_input({3, 1, 1}, 3);
  CHECK_THROWS_WITH(Graph::build(three_features, {flat, loss}), ContainsSubstring("nothing to train"));
  CHECK_NOTHROW(
      Graph::build(three_features, {flat, {"logits", {"flat"}, dense(3)}, {"loss", {"logits", "label"}, kLoss}}));
}

TEST_CASE("each layer whose parameters do not affect the loss is refused by name") {
  const auto accuracy = std::make_shared<AccuracyLayer>();
  const LayerDescription logits{"logits", {"image"}, dense(3)};
  const LayerDescription loss{"loss", {"logits", "label"}, kLoss};
  check_issue({{"other", {"image"}, dense(3)}, logits, loss, {"right", {"other", "label"}, accuracy}}, 0, -1,
              "layer 'other': its parameters would never be trained");
  const std::vector<GraphIssue> issues = issues_of({logits,
                                                    {"last", {"relu"}, dense(3)},
                                                    {"relu", {"first"}, relu()},
                                                    loss,
                                                    {"right", {"last", "label"}, accuracy},
                                                    {"first", {"image"}, conv(2, 3)}});
  std::vector<int> layers;
  for (const GraphIssue& issue : issues) layers.push_back(issue.layer);
  CHECK(layers == std::vector<int>{5, 1});
  // A layer without readers gets only this message.
  check_issue({logits, loss, {"first", {"image"}, conv(2, 3)}, {"last", {"first"}, dense(3)}}, 3, -1, "nobody reads");
}

TEST_CASE("LeNet has Caffe's parameters and FLOPs") {
  const Graph graph = Graph::build(image_input({1, 28, 28}, 10), arbalest::tests::lenet());
  const std::vector<Shape> shapes = graph.shapes(1);
  std::int64_t parameters = 0;
  std::int64_t conv_and_dense_flops = 0;
  for (const Graph::Node& node : graph.nodes()) {
    const std::vector<Shape> inputs = Graph::input_shapes(node, shapes);
    const auto specs = node.layer->parameters(inputs);
    for (const ParameterSpec& spec : specs) parameters += spec.shape.elements();
    if (!specs.empty()) conv_and_dense_flops += node.layer->forward_flops(inputs);
  }
  CHECK(parameters == 431'080);
  // Multiply-adds: 288,000 + 1,600,000 + 400,000 + 5,000; biases: 11,520 + 3,200 + 500 + 10.
  CHECK(conv_and_dense_flops == 2 * 2'293'000 + 15'230);
}
