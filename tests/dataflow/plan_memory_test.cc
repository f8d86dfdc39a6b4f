// What plans take of memory: far less than a buffer for each output and each gradient, in residual networks too.
#include "dataflow/layers/activation.h"
#include "dataflow/layers/classification.h"
#include "dataflow/layers/conv2d.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/global_average_pool.h"
#include "dataflow/layers/joining.h"
#include "dataflow/layers/pool2d.h"
#include "dataflow/plan.h"
#include "engine/devices.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

using namespace dataflow;

// Writes layers one behind the other.
class Builder {
 public:
  std::string conv(const std::string& input, std::int64_t filters, std::int64_t kernel, std::int64_t stride) {
    const engine::Window window{
        .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}};
    return append({input}, std::make_shared<Conv2dLayer>(Conv2dLayer::Options{.filters = filters, .window = window}));
  }
  // In the place of batch normalization: a layer between convolution and ReLU.
  std::string dropout(const std::string& input) { return append({input}, std::make_shared<DropoutLayer>(0.1F)); }
  std::string relu(const std::string& input) {
    return append({input}, std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu));
  }
  std::string append(std::vector<std::string> inputs, std::shared_ptr<const Layer> layer) {
    layers.push_back({"layer" + std::to_string(layers.size()), std::move(inputs), std::move(layer)});
    return layers.back().name;
  }

  std::vector<LayerDescription> layers;
};

// ResNet-50 (He et al., 2015) on images of 224 x 224, without batch normalization.
Graph bottlenecks(bool dropout) {
  Builder builder;
  const auto normal = [&](const std::string& input) { return dropout ? builder.dropout(input) : input; };
  std::string x = builder.relu(normal(builder.conv("image", 64, 7, 2)));
  const engine::Window halves{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  x = builder.append({x}, std::make_shared<Pool2dLayer>(Pool2dLayer::Options{.window = halves}));
  std::int64_t width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && width > 64 ? 2 : 1;
      const std::string shortcut = block == 0 ? normal(builder.conv(x, 4 * width, 1, stride)) : x;
      std::string y = builder.relu(normal(builder.conv(x, width, 1, 1)));
      y = builder.relu(normal(builder.conv(y, width, 3, stride)));
      y = normal(builder.conv(y, 4 * width, 1, 1));
      x = builder.relu(builder.append({y, shortcut}, std::make_shared<AddLayer>()));
    }
    width *= 2;
  }
  x = builder.append({x}, std::make_shared<GlobalAveragePoolLayer>());
  x = builder.append({x}, std::make_shared<DenseLayer>(DenseLayer::Options{.units = 10}));
  builder.append({x, "label"}, std::make_shared<SoftmaxCrossEntropyLayer>());
  return Graph::build({{3, 224, 224}, 10}, builder.layers);
}

}  // namespace

// A bottleneck block of width S has outputs of S + S + 4 S + 4 S, of which S + S + 4 S are kept for backward: the sum
// is made in the place of the last convolution's output. That is 30 % of twice the outputs; the rest is gradients under
// way. Dropout is all in place.
TEST_CASE("a plan of ResNet-50's layers takes a third of a buffer for each output and gradient") {
  const auto [dropout, most] = GENERATE(table<bool, double>({{false, 0.34}, {true, 0.19}}));
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const Plan plan(bottlenecks(dropout), *device, {.batch = 32});
  CAPTURE(dropout, plan.arena_bytes(), plan.bytes_without_reuse());
  CHECK(static_cast<double>(plan.arena_bytes()) < most * static_cast<double>(plan.bytes_without_reuse()));
}

TEST_CASE("in BF16 tensors take half of the memory") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  if (!cpu_computes_bfloat16()) skip_test("needs a processor with AVX-512");
  const Graph graph = bottlenecks(false);
  const Plan exact(graph, *device, {.batch = 4});
  const Plan halves(graph, *device, {.batch = 4, .precision = engine::Precision::kBFloat16});
  const auto part = [](std::size_t a, std::size_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  CHECK(part(halves.bytes_without_reuse(), exact.bytes_without_reuse()) == Approx(0.5).epsilon(1e-3));
  CHECK(part(halves.arena_bytes(), exact.arena_bytes()) < 0.6);  // the mini-batch is there in both types
}

}  // namespace arbalest::tests
