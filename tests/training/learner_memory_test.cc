// What a learner is said to take of its device's memory, beside what it asks the device for.
#include "learners/learner.h"

#include <algorithm>
#include <numeric>

#include "dataflow/layers/classification.h"
#include "dataflow/layers/conv2d.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/joining.h"
#include "engine/devices.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::Buffer;
using engine::Layout;

// The CPU, with a list of all that was allocated.
class CountingDevice final : public engine::Device {
 public:
  const std::string& name() const noexcept override { return device_->name(); }
  int cores() const noexcept override { return device_->cores(); }
  Buffer allocate(std::size_t bytes) override {
    allocated.push_back(bytes);
    return device_->allocate(bytes);
  }
  Buffer allocate_host(std::size_t bytes) override { return device_->allocate_host(bytes); }
  std::size_t free_memory() const override { return device_->free_memory(); }
  std::unique_ptr<engine::Stream> create_stream(const engine::StreamOptions& options) override {
    return device_->create_stream(options);
  }
  std::size_t stream_bytes(const engine::StreamOptions& options) const override {
    return device_->stream_bytes(options);
  }
  std::unique_ptr<engine::Operator> prepare(const engine::OperatorSpec& spec,
                                            const engine::PrepareOptions& options) override {
    return device_->prepare(spec, options);
  }
  Layout plain_layout(const engine::Shape& shape, engine::DType dtype) const override {
    return device_->plain_layout(shape, dtype);
  }
  void convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) override {
    device_->convert(source_layout, source, target_layout, target);
  }

  std::vector<std::size_t> allocated;  // bytes

 private:
  std::unique_ptr<engine::Device> device_ = engine::open_device(engine::parse_device("cpu"));
};

dataflow::Graph small_residual_network() {
  using namespace dataflow;
  Conv2dLayer::Options conv;
  conv.filters = 20;
  conv.window = {{3, 3}, {1, 1}, {1, 1}};
  const DenseLayer::Options logits{.units = 3};
  return Graph::build({{2, 9, 9}, 3}, {{"first", {"image"}, std::make_shared<Conv2dLayer>(conv)},
                                       {"second", {"first"}, std::make_shared<Conv2dLayer>(conv)},
                                       {"sum", {"first", "second"}, std::make_shared<AddLayer>()},
                                       {"logits", {"sum"}, std::make_shared<DenseLayer>(logits)},
                                       {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
}

}  // namespace

TEST_CASE("a learner allocates what is said before, the arena among it as it was planned", "[training][memory]") {
  CountingDevice device;
  const dataflow::Graph graph = small_residual_network();
  const dataflow::Plan training(graph, device, {.batch = 8});
  const dataflow::Plan inference(
      graph, device, {.batch = 8, .mode = engine::OperatorMode::kInference, .parameters = &training.parameters()});
  REQUIRE(device.allocated.empty());  // plans take nothing
  const engine::UpdateRule rule = engine::Sgd{.momentum = 0.9F};
  const Buffer evaluated =  // of the pool, not of a learner
      device.allocate(static_cast<std::size_t>(training.parameters().elements()) * sizeof(float));
  device.allocated.clear();
  const learners::Learner learner(device, training, inference,
                                  {.rule = rule, .evaluation_weights = evaluated.as<float>()});
  CHECK(std::accumulate(device.allocated.begin(), device.allocated.end(), std::size_t{0}) ==
        learners::Learner::device_bytes(device, training, inference, rule));
  REQUIRE(training.arena_bytes() > inference.arena_bytes());
  CHECK(std::ranges::count(device.allocated, training.arena_bytes()) == 1);
}

}  // namespace arbalest::tests
