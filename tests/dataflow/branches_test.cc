// Models with branches on a device: loss and gradients of all parameters, compared with the same model in double
// precision. Runs on the CPU, on the stand-in of CUDA's libraries and on a real GPU.
#include "dataflow/layers/activation.h"
#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/flatten.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/images/global_average_pool.h"
#include "dataflow/layers/images/padded_shortcut.h"
#include "dataflow/layers/images/pool2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/backends/devices.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/plan_run.h"

namespace arbalest::tests {
namespace {

using namespace dataflow;
using engine::ActivationKind;
using engine::Precision;

using Layers = std::vector<LayerDescription>;

std::shared_ptr<const Layer> conv(std::int64_t filters, std::int64_t kernel, std::int64_t stride = 1) {
  const engine::Window window{
      .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}};
  return std::make_shared<Conv2dLayer>(Conv2dLayer::Options{.filters = filters, .window = window});
}
std::shared_ptr<const Layer> activation(ActivationKind kind) { return std::make_shared<ActivationLayer>(kind); }
std::shared_ptr<const Layer> relu() { return activation(ActivationKind::kRelu); }
std::shared_ptr<const Layer> add() { return std::make_shared<AddLayer>(); }
std::shared_ptr<const Layer> concat() { return std::make_shared<ConcatLayer>(); }
std::shared_ptr<const Layer> dense(std::int64_t units) {
  return std::make_shared<DenseLayer>(DenseLayer::Options{.units = units});
}
std::shared_ptr<const Layer> pool(engine::PoolKind kind, std::int64_t kernel, std::int64_t stride,
                                  std::int64_t padding) {
  return std::make_shared<Pool2dLayer>(Pool2dLayer::Options{
      .kind = kind, .window = {.kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}}});
}

// Two basic blocks, the second with a projection; the numbers of channels are not multiples of 8 or 16.
Layers residual(std::int64_t width) {
  return {{"conv1", {"image"}, conv(width, 3)},
          {"relu1", {"conv1"}, relu()},
          {"conv2", {"relu1"}, conv(width, 3)},
          {"relu2", {"conv2"}, relu()},
          {"conv3", {"relu2"}, conv(width, 3)},
          {"add1", {"conv3", "relu1"}, add()},
          {"relu3", {"add1"}, relu()},
          {"conv4", {"relu3"}, conv(2 * width, 3, 2)},
          {"relu4", {"conv4"}, relu()},
          {"conv5", {"relu4"}, conv(2 * width, 3)},
          {"project", {"relu3"}, conv(2 * width, 1, 2)},
          {"add2", {"project", "conv5"}, add()},
          {"relu5", {"add2"}, relu()},
          {"pool", {"relu5"}, std::make_shared<GlobalAveragePoolLayer>()}};
}

// Shortcuts without parameters, and sums of sums without activation: many tensors have equal gradients.
Layers shortcuts() {
  return {{"conv1", {"image"}, conv(6, 3)},
          {"relu1", {"conv1"}, relu()},
          {"conv2", {"relu1"}, conv(6, 3)},
          {"relu2", {"conv2"}, relu()},
          {"add1", {"relu1", "relu2"}, add()},
          {"conv3", {"add1"}, conv(6, 1)},
          {"add2", {"add1", "conv3"}, add()},
          {"add3", {"add2", "conv1b"}, add()},
          {"conv1b", {"relu1"}, conv(6, 1)},
          {"twice", {"add3", "add3"}, add()},
          {"shortcut", {"twice"}, std::make_shared<PaddedShortcutLayer>(13, 2)},
          {"conv4", {"add3"}, conv(13, 3, 2)},
          {"add4", {"shortcut", "conv4"}, add()},
          {"tanh", {"add4"}, activation(ActivationKind::kTanh)},
          {"pool", {"tanh"}, std::make_shared<GlobalAveragePoolLayer>()}};
}

// An inception module that also concatenates the image itself.
Layers inception(std::int64_t width) {
  return {{"conv1", {"image"}, conv(width, 3)},
          {"relu1", {"conv1"}, relu()},
          {"narrow", {"relu1"}, conv(width, 1)},
          {"narrow_relu", {"narrow"}, relu()},
          {"reduce", {"relu1"}, conv(width, 1)},
          {"reduce_relu", {"reduce"}, relu()},
          {"wide", {"reduce_relu"}, conv(2 * width, 3)},
          {"wide_relu", {"wide"}, relu()},
          {"pool", {"relu1"}, pool(engine::PoolKind::kMax, 3, 1, 1)},
          {"project", {"pool"}, conv(width, 1)},
          {"join", {"narrow_relu", "wide_relu", "project"}, concat()},
          {"join_relu", {"join"}, relu()},
          {"with_image", {"join_relu", "image"}, concat()},
          {"last", {"with_image"}, conv(width, 3, 2)},
          {"flat", {"last"}, std::make_shared<FlattenLayer>()},
          {"side", {"image"}, dense(9)},
          {"features", {"flat", "side"}, concat()},
          {"hidden", {"features"}, dense(9)},
          {"hidden_sum", {"hidden", "side"}, add()}};
}

Graph build(Layers layers) {
  const std::string last = layers.back().name;
  layers.push_back({"logits", {last}, dense(3)});
  layers.push_back({"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()});
  return Graph::build(image_input({3, 7, 7}, 3), layers);
}

struct Tolerance {
  Precision precision;
  double relative;
};

std::vector<Tolerance> tolerances(const engine::Device& device) {
  std::vector<Tolerance> all{{Precision::kFloat32, 1e-4}};
  // Each tensor is rounded to 8 bits, and some gradients are small differences of large numbers. A gradient without the
  // contribution of one reader is wrong by more than half.
  if (computes_bfloat16(device)) all.push_back({Precision::kBFloat16, 0.25});
  return all;
}

void check_against_reference(const Graph& graph, std::int64_t batch) {
  const PlanInput input = random_plan_input(graph, batch, 3);
  const GraphRun expected = run_reference(graph, input.parameters, input.images, input.labels);
  const auto device = engine::open_device(engine::parse_device(ARBALEST_TEST_DEVICE));
  const int threads = GENERATE(1, 2);
  for (const auto& [precision, tolerance] : tolerances(*device)) {
    const Plan plan(graph, *device, {.batch = batch, .threads = threads, .precision = precision});
    const PlanRun run = run_plan(*device, plan, input, threads);
    CAPTURE(to_string(precision), threads);
    CHECK(static_cast<double>(run.result.sums[engine::kLossSum]) / static_cast<double>(batch) ==
          Approx(expected.loss).epsilon(tolerance));
    REQUIRE(run.gradients.size() == expected.gradients.size());
    for (const auto& [name, gradient] : run.gradients) {
      CAPTURE(name);
      CHECK(relative_error(gradient, expected.gradients.at(name)) < tolerance);
    }
  }
}

}  // namespace

TEST_CASE("gradients of residual networks agree with the reference", "[training][branches]") {
  check_against_reference(build(residual(GENERATE(5, 16))), 4);
}

TEST_CASE("gradients that several layers share agree with the reference", "[training][branches]") {
  check_against_reference(build(shortcuts()), 3);
}

TEST_CASE("gradients of inception modules agree with the reference", "[training][branches]") {
  check_against_reference(build(inception(GENERATE(5, 16))), 4);
}

TEST_CASE("several losses train by their weighted sum, and evaluation reports the main one", "[training][branches]") {
  Layers layers = inception(5);
  const auto loss = [](float weight, float smoothing = 0.0F) {
    return std::make_shared<SoftmaxCrossEntropyLayer>(SoftmaxCrossEntropyLayer::Options{weight, smoothing});
  };
  layers.push_back({"side_pool", {"join_relu"}, std::make_shared<GlobalAveragePoolLayer>()});
  layers.push_back({"side_logits", {"side_pool"}, dense(3)});
  layers.push_back({"side_loss", {"side_logits", "label"}, loss(0.4F, 0.1F)});
  layers.push_back({"logits", {"hidden_sum"}, dense(3)});
  layers.push_back({"again", {"logits", "label"}, loss(0.25F)});
  layers.push_back({"loss", {"logits", "label"}, loss(2.0F)});
  const Graph graph = Graph::build(image_input({3, 7, 7}, 3), layers);
  constexpr std::int64_t kBatch = 4;
  check_against_reference(graph, kBatch);

  const PlanInput input = random_plan_input(graph, kBatch, 3);
  const GraphRun expected = run_reference(graph, input.parameters, input.images, input.labels);
  const auto device = engine::open_device(engine::parse_device(ARBALEST_TEST_DEVICE));
  const Plan training(graph, *device, {.batch = kBatch});
  const Plan inference(
      graph, *device,
      {.batch = kBatch, .mode = engine::OperatorMode::kInference, .parameters = &training.parameters()});
  REQUIRE(inference.parameters().elements() == training.parameters().elements());
  const PlanRun run = run_plan(*device, inference, input, 1);
  CHECK(static_cast<double>(run.result.sums[engine::kLossSum]) / static_cast<double>(kBatch) ==
        Approx(expected.main_loss).epsilon(1e-4));
  CHECK(run.result.sums[1] == static_cast<float>(expected.correct));

  // Without the side branch the inference plan is the same.
  std::erase_if(layers, [](const LayerDescription& layer) { return layer.name.starts_with("side_"); });
  const Graph main_only = Graph::build(image_input({3, 7, 7}, 3), layers);
  const Plan main_training(main_only, *device, {.batch = kBatch});
  const Plan alone(
      main_only, *device,
      {.batch = kBatch, .mode = engine::OperatorMode::kInference, .parameters = &main_training.parameters()});
  CHECK(inference.arena_bytes() == alone.arena_bytes());
  CHECK(inference.bytes_without_reuse() == alone.bytes_without_reuse());
}

TEST_CASE("the reference of a model with branches agrees with central differences", "[training][branches]") {
  Layers layers = shortcuts();
  for (LayerDescription& layer : layers) {
    if (layer.layer->kind() == "relu") layer.layer = activation(ActivationKind::kSigmoid);
  }
  const Graph graph = build(layers);
  const PlanInput input = random_plan_input(graph, 2, 3);
  const GraphRun run = run_reference(graph, input.parameters, input.images, input.labels);
  for (const auto& [name, gradient] : run.gradients) {
    std::map<std::string, Values> changed = input.parameters;
    const auto loss = [&](const Values& values) {
      changed[name] = values;
      return run_reference(graph, changed, input.images, input.labels).loss;
    };
    CAPTURE(name);
    const bool is_small = gradient.size() <= 40;
    if (is_small) CHECK(relative_error(gradient, central_differences(loss, input.parameters.at(name))) < 1e-6);
  }
}

}  // namespace arbalest::tests
