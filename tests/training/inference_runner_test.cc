// Tests that InferenceRunner returns the output of the layer that it was asked for.
#include "learners/inference_runner.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/devices.h"
#include "engine/error.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_ops.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kFilters = 4;
const engine::Shape kImages{kBatch, 2, 7, 6};
const engine::Window kWindow{{3, 3}, {1, 1}, {1, 1}};

// Four convolutions in a row. Their outputs have one size, so without need a later one takes the memory of an earlier
// one.
dataflow::Graph row_of_convolutions() {
  using namespace dataflow;
  Conv2dLayer::Options options;
  options.filters = kFilters;
  options.window = kWindow;
  const auto conv = std::make_shared<Conv2dLayer>(options);
  const DenseLayer::Options logits{.units = 3};
  return Graph::build(image_input({kImages[1], kImages[2], kImages[3]}, 3),
                      {{"first", {"image"}, conv},
                       {"second", {"first"}, conv},
                       {"third", {"second"}, conv},
                       {"fourth", {"third"}, conv},
                       {"logits", {"fourth"}, std::make_shared<DenseLayer>(logits)},
                       {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
}

std::vector<float> floats(const Values& values) { return {values.begin(), values.end()}; }

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
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const char* name = graph.nodes()[k].name.c_str();
    CAPTURE(name);
    expected = conv2d(shape, expected, weights[k], biases[k], kFilters, kWindow);
    shape = {kBatch, kFilters, kImages[2], kImages[3]};
    learners::InferenceModel loaded(graph, *device, {.batch = kBatch, .threads = 2, .output = name});
    loaded.load(model);
    learners::InferenceRunner runner(loaded);
    CHECK(runner.output_shape() == shape);
    for (int run = 0; run < 2; ++run) {
      const std::span<const float> output = runner.run(batch).output;
      CHECK(relative_error(std::vector<float>(output.begin(), output.end()), expected) < 1e-5);
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
