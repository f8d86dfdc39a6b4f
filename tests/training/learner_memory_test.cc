// Compares the memory that a learner reports with what it requests from its device.
#include "learners/team.h"

#include <algorithm>
#include <numeric>

#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/backends/devices.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_device.h"
#include "tests/support/resident_bytes.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

using engine::Buffer;

// A CPU device that records all allocations.
class CountingDevice final : public ForwardingDevice {
 public:
  CountingDevice() : ForwardingDevice(engine::open_device(engine::parse_device("cpu"))) {}

  Buffer allocate(std::size_t bytes) override {
    allocated.push_back(bytes);
    return ForwardingDevice::allocate(bytes);
  }

  std::vector<std::size_t> allocated;  // bytes
};

dataflow::Graph small_residual_network() {
  using namespace dataflow;
  Conv2dLayer::Options conv;
  conv.filters = 20;
  conv.window = {{3, 3}, {1, 1}, {1, 1}};
  const DenseLayer::Options logits{.units = 3};
  return Graph::build(image_input({2, 9, 9}, 3),
                      {{"first", {"image"}, std::make_shared<Conv2dLayer>(conv)},
                       {"second", {"first"}, std::make_shared<Conv2dLayer>(conv)},
                       {"sum", {"first", "second"}, std::make_shared<AddLayer>()},
                       {"logits", {"sum"}, std::make_shared<DenseLayer>(logits)},
                       {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
}

// Makes a learner of `graph` and checks its memory. Returns the size of its arena relative to one buffer for each
// output and each gradient.
double check_learner_of(const dataflow::Graph& graph, std::int64_t batch) {
  CountingDevice device;
  const dataflow::Plan training(graph, device, {.batch = batch});
  const dataflow::Plan inference(
      graph, device, {.batch = batch, .mode = engine::OperatorMode::kInference, .parameters = &training.parameters()});
  REQUIRE(device.allocated.empty());  // plans allocate nothing
  const learners::LearnerOptions options{.rule = engine::Sgd{.momentum = 0.9F}};
  const Buffer evaluated =  // belongs to the pool, not to a learner
      device.allocate(static_cast<std::size_t>(training.parameters().elements()) * sizeof(float));
  device.allocated.clear();
  const std::size_t expected = learners::Team::learner_bytes(training, inference, options);
  const double before = resident_bytes();
  const learners::Team team(device, training, inference, {.shared = {.evaluation_weights = evaluated.as<float>()}},
                            options);
  const double taken = resident_bytes() - before;
  CHECK(std::accumulate(device.allocated.begin(), device.allocated.end(), std::size_t{0}) == expected);
  if (!kSanitized) CHECK(taken == Approx(static_cast<double>(expected)).epsilon(0.02).margin(8 << 20));
  REQUIRE(training.arena_bytes() > inference.arena_bytes());
  CHECK(std::ranges::count(device.allocated, training.arena_bytes()) == 1);
  return static_cast<double>(training.arena_bytes()) / static_cast<double>(training.bytes_without_reuse());
}

}  // namespace

TEST_CASE("a learner allocates what device_bytes() predicts, including the planned arena", "[training][memory]") {
  CHECK(check_learner_of(small_residual_network(), 8) < 1.0);
}

// Without reuse, half of the buffers would be gradients. Few gradients are live at a time, but most values are kept for
// the backward pass.
TEST_CASE("a learner of ResNet-50 takes less than half of the memory without reuse", "[training][memory]") {
  constexpr std::size_t kNeeded = std::size_t{6} << 30U;
  if (engine::open_device(engine::parse_device("cpu"))->free_memory() < kNeeded) skip_test("needs 6 GiB of memory");
  const dataflow::InputDescription imagenet = dataflow::image_input({3, 224, 224}, 1000);
  CHECK(check_learner_of(dataflow::Graph::build(imagenet, zoo_layers("resnet { depth: 50 }", imagenet)), 32) < 0.48);
}

}  // namespace arbalest::tests
