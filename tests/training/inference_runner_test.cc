// Tests that InferenceRunner returns the output of the layer that it was asked for.
#include "learners/inference_runner.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kFilters = 4;
const engine::Shape kImages{kBatch, 2, 7, 6};
const engine::Window kWindow{{3, 3}, {1, 1}, {1, 1}};

// Four convolutions in a row, each with a ReLU. Their outputs have one size, so without need a later one takes the
// memory of an earlier one.
dataflow::Graph row_of_convolutions() {
  using namespace dataflow;
  Conv2dLayer::Options options;
  options.filters = kFilters;
  options.window = kWindow;
  const auto conv = std::make_shared<Conv2dLayer>(options);
  const auto relu = std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu);
  const DenseLayer::Options logits{.units = 3};
  return Graph::build(image_input({kImages[1], kImages[2], kImages[3]}, 3),
                      {{"first", {"image"}, conv},
                       {"relu1", {"first"}, relu},
                       {"second", {"relu1"}, conv},
                       {"relu2", {"second"}, relu},
                       {"third", {"relu2"}, conv},
                       {"relu3", {"third"}, relu},
                       {"fourth", {"relu3"}, conv},
                       {"relu4", {"fourth"}, relu},
                       {"logits", {"relu4"}, std::make_shared<DenseLayer>(logits)},
                       {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
}

std::vector<float> floats(const Values& values) { return {values.begin(), values.end()}; }

constexpr std::int64_t kUnits = 5;

// A dense layer without bias, perhaps batch norm, and an activation, whose output is the model's.
struct ActivatedModel {
  ActivatedModel(const engine::ActivationFunction& f, bool has_norm)
      : weights(random_values(kUnits * kImages.elements() / kBatch, 3)),
        images(random_values(kImages.elements(), 4)),
        graph(build(f, has_norm)) {
    for (double& weight : weights) weight *= 3;  // so that the limits of activations are reached
    tensors.push_back({"hidden.weight", {kUnits, kImages.elements() / kBatch}, floats(weights)});
    if (!has_norm) return;
    for (const auto& [name, value] :
         {std::pair("weight", 1.0F), {"bias", 0.5F}, {"running_mean", 0.0F}, {"running_var", 1.0F}}) {
      tensors.push_back({std::string("norm.") + name, {kUnits}, std::vector<float>(kUnits, value)});
    }
  }

  static dataflow::Graph build(const engine::ActivationFunction& f, bool has_norm) {
    using namespace dataflow;
    const DenseLayer::Options hidden{.units = kUnits, .has_bias = false};
    std::vector<LayerDescription> layers{{"hidden", {"image"}, std::make_shared<DenseLayer>(hidden)}};
    const BatchNormLayer::Options options{.epsilon = 0.0F};
    if (has_norm) layers.push_back({"norm", {"hidden"}, std::make_shared<BatchNormLayer>(options)});
    layers.push_back({"last", {layers.back().name}, std::make_shared<ActivationLayer>(f)});
    layers.push_back({"loss", {"last", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()});
    return Graph::build(image_input({kImages[1], kImages[2], kImages[3]}, kUnits), layers);
  }

  // The output of the dense layer.
  Values expected_hidden() const {
    const std::size_t features = images.size() / static_cast<std::size_t>(kBatch);
    Values result;
    for (std::size_t image = 0; image < images.size(); image += features) {
      for (std::size_t row = 0; row < weights.size(); row += features) {
        double sum = 0;
        for (std::size_t f = 0; f < features; ++f) sum += images[image + f] * weights[row + f];
        result.push_back(sum);
      }
    }
    return result;
  }

  std::vector<float> output_of(const char* layer, bool prediction) const {
    const auto device = engine::open_device(engine::parse_device("cpu"));
    learners::InferenceModel loaded(graph, *device,
                                    {.batch = kBatch, .threads = 2, .output = layer, .prediction = prediction});
    loaded.load(tensors);
    learners::InferenceRunner runner(loaded);
    const dataflow::BatchMemory memory(graph.input(), kBatch, *device);
    std::ranges::copy(floats(images), memory.batch().front().as<float>().begin());
    std::ranges::fill(memory.batch().back().as<std::int32_t>(), 0);
    const std::span<const float> output = runner.run({.tensors = memory.batch(), .examples = kBatch}).output;
    return {output.begin(), output.end()};
  }

  Values weights;
  Values images;
  dataflow::Graph graph;
  std::vector<dataflow::NamedTensor> tensors = {};
};

}  // namespace

TEST_CASE("the output of any layer can be read, although later layers could reuse its memory", "[training]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const dataflow::Graph graph = row_of_convolutions();
  std::vector<dataflow::NamedTensor> model;
  std::vector<Values> weights;
  std::vector<Values> biases;
  std::int64_t channels = kImages[1];
  for (const char* layer : {"first", "second", "third", "fourth"}) {
    const engine::Shape shape{kFilters, channels, 3, 3};
    weights.push_back(random_values(shape.elements(), 10 + static_cast<unsigned>(weights.size())));
    biases.push_back(random_values(kFilters, 20 + static_cast<unsigned>(biases.size())));
    model.push_back({std::string(layer) + ".weight", shape, floats(weights.back())});
    model.push_back({std::string(layer) + ".bias", {kFilters}, floats(biases.back())});
    channels = kFilters;
  }
  const engine::Shape dense{3, kFilters * kImages[2] * kImages[3]};
  model.push_back({"logits.weight", dense, floats(random_values(dense.elements(), 30))});
  model.push_back({"logits.bias", {3}, floats(random_values(3, 31))});

  const Values images = random_values(kImages.elements(), 1);
  const dataflow::BatchMemory memory(graph.input(), kBatch, *device);
  std::ranges::copy(floats(images), memory.batch().front().as<float>().begin());
  std::ranges::fill(memory.batch().back().as<std::int32_t>(), 0);
  const dataflow::Batch batch{.tensors = memory.batch(), .examples = kBatch};
  Values expected = images;
  engine::Shape shape = kImages;
  const auto check = [&](const std::string& layer) {
    CAPTURE(layer);
    learners::InferenceModel loaded(graph, *device, {.batch = kBatch, .threads = 2, .output = layer});
    loaded.load(model);
    learners::InferenceRunner runner(loaded);
    CHECK(runner.output_shape() == shape);
    for (int run = 0; run < 2; ++run) {
      const std::span<const float> output = runner.run(batch).output;
      CHECK(relative_error(std::vector<float>(output.begin(), output.end()), expected) < 1e-5);
    }
  };
  for (std::size_t k = 0; k < weights.size(); ++k) {
    expected = conv2d(shape, expected, weights[k], biases[k], kFilters, kWindow);
    shape = {kBatch, kFilters, kImages[2], kImages[3]};
    check(graph.nodes()[2 * k].name);
    expected = activation(expected, engine::ActivationKind::kRelu);
    check(graph.nodes()[2 * k + 1].name);
  }
}

TEST_CASE("an activation at the end, and the layer before it, have their own outputs", "[training]") {
  using engine::ActivationKind;
  for (const ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid, ActivationKind::kLeakyRelu,
        ActivationKind::kGelu, ActivationKind::kSilu, ActivationKind::kRelu6, ActivationKind::kHardSwish}) {
    for (const bool has_norm : {false, true}) {
      CAPTURE(kind, has_norm);
      const engine::ActivationFunction f(kind, kind == ActivationKind::kLeakyRelu ? 0.25F : 0.0F);
      const ActivatedModel model(f, has_norm);
      const Values hidden = model.expected_hidden();
      Values before = hidden;
      for (double& value : before) value += has_norm ? 0.5 : 0.0;
      for (const bool prediction : {false, true}) {
        CHECK(relative_error(model.output_of("last", prediction), activation(before, f)) < 1e-5);
        CHECK(relative_error(model.output_of("hidden", prediction), hidden) < 1e-5);
        if (has_norm) CHECK(relative_error(model.output_of("norm", prediction), before) < 1e-5);
      }
    }
  }
}

TEST_CASE("only a layer with an output that runs at inference can be read", "[training]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  for (const char* name : {"loss", "accuracy", "no such layer"}) {
    CHECK_THROWS_WITH(learners::InferenceModel(row_of_convolutions(), *device, {.batch = kBatch, .output = name}),
                      ContainsSubstring("has an output that can be read"));
  }
}

}  // namespace arbalest::tests
