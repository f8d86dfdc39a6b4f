// A devices of runners passes on the results of all mini-batches in their order, and shares the weights of each device.
#include "scheduler/inference_devices.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/flatten.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_device.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kExamples = 203;  // the last mini-batch has 3
constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kUnits = 20'000;

// Example i is the number i.
class Numbers final : public dataflow::Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const dataflow::InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return kExamples; }
  void read(std::int64_t example, const dataflow::ExamplePosition& /*position*/,
            std::span<const dataflow::InputTensor> features) const override {
    if (example == unreadable) engine::fail(engine::ErrorKind::kData, "example {} is gone", example);
    features.front().as<float>().front() = static_cast<float>(example);
  }
  void read_label(std::int64_t /*example*/, const dataflow::InputTensor& label) const override {
    label.as<std::int32_t>().front() = 0;
  }

  std::int64_t unreadable = -1;

 private:
  std::string name_ = "numbers";
  dataflow::InputDescription description_ = dataflow::image_input({1, 1, 1}, 3);
};

// The logits are (x, 2 x, -x).
dataflow::Graph graph() {
  using namespace dataflow;
  return Graph::build(image_input({1, 1, 1}, 3),
                      {{"flat", {"image"}, std::make_shared<FlattenLayer>()},
                       {"logits", {"flat"}, std::make_shared<DenseLayer>(DenseLayer::Options{.units = 3})},
                       {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
}
const std::vector<dataflow::NamedTensor> kModel = {{"logits.weight", {3, 1}, {1.0F, 2.0F, -1.0F}},
                                                   {"logits.bias", {3}, {0.0F, 0.0F, 0.0F}}};

// Counts the bytes that it gives, and refuses to give more than some.
class CountingDevice final : public ForwardingDevice {
 public:
  explicit CountingDevice(std::size_t most)
      : ForwardingDevice(engine::open_device(engine::parse_device("cpu"))), most_(most) {}

  engine::Buffer allocate(std::size_t bytes) override {
    if (given + bytes > most_) engine::fail(engine::ErrorKind::kOutOfMemory, "no more than {} bytes", most_);
    given += bytes;
    return ForwardingDevice::allocate(bytes);
  }

  std::size_t given = 0;

 private:
  std::size_t most_;
};

// The outputs of the devices's examples, in the order in which they come. It stops after `most` mini-batches.
std::vector<float> outputs_of(scheduler::InferenceDevices& inference, engine::Device& device, const Numbers& data,
                              std::size_t most = 1000) {
  engine::host::Pool pool(2);
  dataflow::SequentialOrder order(data.size(), kBatch);
  dataflow::BatchRing ring(data, order, device, pool, 3 * inference.runners());
  std::vector<float> outputs;
  std::size_t taken = 0;
  inference.run(ring, [&](const dataflow::Batch& batch, const learners::InferenceRunner::Result& result) {
    CHECK(batch.number == taken);
    CHECK(result.output.size() == 3 * kBatch);
    const auto rows = result.output.first(static_cast<std::size_t>(3 * batch.examples));
    outputs.insert(outputs.end(), rows.begin(), rows.end());
    return ++taken < most;
  });
  return outputs;
}

}  // namespace

TEST_CASE("every example gets its own output, in order, with any number of runners and devices", "[training]") {
  std::vector<float> expected;
  for (int i = 0; i < kExamples; ++i) {
    const auto x = static_cast<float>(i);
    expected.insert(expected.end(), {x, 2.0F * x, -x});
  }
  for (const std::vector<int>& runners : {std::vector<int>{1}, {4}, {2, 3}}) {
    std::vector<std::unique_ptr<engine::Device>> devices;
    for (std::size_t d = 0; d < runners.size(); ++d) {
      devices.push_back(engine::open_device(engine::parse_device("cpu")));
    }
    scheduler::InferenceDevices inference(graph(), devices, runners, {.batch = kBatch, .output = "logits"});
    CHECK(inference.runners() == (runners.size() == 2 ? 5 : runners[0]));
    inference.load(kModel);
    const Numbers data;
    CHECK(outputs_of(inference, *devices.front(), data) == expected);
    CHECK(outputs_of(inference, *devices.front(), data, 2) ==
          std::vector<float>(expected.begin(), expected.begin() + 2 * kBatch * 3));
  }
}

TEST_CASE("a mini-batch that cannot be read ends the pass with its error, after those before it", "[training]") {
  std::vector<std::unique_ptr<engine::Device>> devices;
  devices.push_back(engine::open_device(engine::parse_device("cpu")));
  const std::vector<int> runners = {3};
  scheduler::InferenceDevices inference(graph(), devices, runners, {.batch = kBatch, .output = "logits"});
  inference.load(kModel);
  Numbers data;
  data.unreadable = 100;
  CHECK_THROWS_WITH(outputs_of(inference, *devices.front(), data), ContainsSubstring("example 100 is gone"));
}

TEST_CASE("runners share the weights, and there are no more than fit", "[training]") {
  using namespace dataflow;
  const Graph wide =
      Graph::build(dataflow::image_input({kUnits, 1, 1}, 3),
                   {{"flat", {"image"}, std::make_shared<FlattenLayer>()},
                    {"hidden", {"flat"}, std::make_shared<DenseLayer>(DenseLayer::Options{.units = 50})},
                    {"logits", {"hidden"}, std::make_shared<DenseLayer>(DenseLayer::Options{.units = 3})},
                    {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
  constexpr std::size_t kWeights = kUnits * 50 * sizeof(float);
  const auto given = [&](std::size_t limit, int most, int& runners) {
    std::vector<std::unique_ptr<engine::Device>> devices;
    auto counting = std::make_unique<CountingDevice>(limit);
    const CountingDevice& device = *counting;
    devices.push_back(std::move(counting));
    const scheduler::InferenceDevices inference(wide, devices, std::vector<int>{most},
                                                {.batch = 1, .output = "logits"});
    runners = inference.runners();
    return device.given;
  };
  constexpr std::size_t kUnlimited = std::size_t{1} << 40;
  int runners = 0;
  const std::size_t one = given(kUnlimited, 1, runners);
  const std::size_t eight = given(kUnlimited, 8, runners);
  CHECK(runners == 8);
  CHECK(one > kWeights);
  const std::size_t each = (eight - one) / 7;
  CHECK(each < kWeights);  // there is one copy of the weights for all
  given(one + 2 * each + each / 2, 8, runners);
  CHECK(runners == 3);
  CHECK_THROWS_WITH(given(kWeights / 2, 8, runners), ContainsSubstring("no more than"));
}

}  // namespace arbalest::tests
