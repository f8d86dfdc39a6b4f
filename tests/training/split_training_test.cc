// Models whose dense layers are split over devices train like the whole model under s_sgd.
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "sma/options.h"
#include "tests/support/catch.h"
#include "tests/support/device_failure.h"
#include "tests/support/evaluation.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/weights.h"

namespace arbalest::tests {

namespace {

using dataflow::DenseSplit;
using Layers = std::vector<dataflow::LayerDescription>;
using Model = std::vector<dataflow::NamedTensor>;

constexpr DenseSplit kNone = DenseSplit::kNone;
constexpr DenseSplit kColumns = DenseSplit::kColumns;
constexpr DenseSplit kRows = DenseSplit::kRows;

std::shared_ptr<const dataflow::Layer> dense(std::int64_t units, DenseSplit split, bool has_bias = true) {
  dataflow::DenseLayer::Options options{.units = units, .has_bias = has_bias};
  options.bias.initializer = {.kind = dataflow::Initializer::Kind::kUniform, .low = -0.5F, .high = 0.5F};
  options.split = split;
  return std::make_shared<dataflow::DenseLayer>(options);
}

std::shared_ptr<const dataflow::Layer> relu() {
  return std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu);
}

// Convolutions before dense layers, of which the first three are split as said.
Layers network(DenseSplit first, DenseSplit second, DenseSplit third, bool has_statistics = false,
               std::int64_t units = 10) {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 6;
  conv.window = {{3, 3}, {1, 1}};
  Layers layers = {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)}, {"relu0", {"conv"}, relu()}};
  std::string last = "relu0";
  if (has_statistics) {
    layers.push_back(
        {"norm", {"relu0"}, std::make_shared<dataflow::BatchNormLayer>(dataflow::BatchNormLayer::Options{})});
    last = "norm";
  }
  layers.push_back({"dense1", {last}, dense(units, first)});
  layers.push_back({"relu1", {"dense1"}, relu()});
  layers.push_back({"drop1", {"relu1"}, std::make_shared<dataflow::DropoutLayer>(0.4F)});
  layers.push_back({"dense2", {"drop1"}, dense(6, second)});
  layers.push_back({"gelu2", {"dense2"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kGelu)});
  layers.push_back({"drop2", {"gelu2"}, std::make_shared<dataflow::DropoutLayer>(0.2F)});
  layers.push_back({"dense3", {"drop2"}, dense(8, third, false)});
  layers.push_back({"logits", {"dense3"}, dense(3, kNone)});
  layers.push_back({"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()});
  return layers;
}

std::vector<std::string> devices_or_skip() {
  const std::vector<std::string> devices = two_devices(engine::host::allowed_cores());
  if (devices.empty()) skip_test("needs two cores");
  return devices;
}

RigOptions split_options(Layers layers) {
  RigOptions options = options_on(devices_or_skip(), {1, 1});
  options.layers = std::move(layers);
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  options.synchronization.bucket_bytes = 256;  // several parts of the backward pass
  options.learning_rate.base = 0.05;
  options.compare_rounds = 3;
  return options;
}

void check_near(const Trained& split, const Trained& whole) {
  CHECK(distance(split.weights, whole.weights) < 1e-5);
  CHECK(std::abs(split.loss - whole.loss) < 1e-5 * whole.loss);
  CHECK(std::abs(split.evaluation.loss() - whole.evaluation.loss()) < 1e-5 * whole.evaluation.loss());
  CHECK(accuracy_of(split.evaluation) == accuracy_of(whole.evaluation));
  CHECK(split.evaluation.examples == whole.evaluation.examples);
}

}  // namespace

TEST_CASE("a split model starts, trains and is evaluated like the whole model", "[split]") {
  const std::vector<std::vector<DenseSplit>> splits = {
      {kColumns, kRows, kNone}, {kColumns, kNone, kNone},       {kNone, kRows, kNone},      {kRows, kColumns, kRows},
      {kRows, kRows, kRows},    {kColumns, kColumns, kColumns}, {kColumns, kRows, kColumns}};
  const Trained whole = train(split_options(network(kNone, kNone, kNone)));
  TrainingRig unsplit(split_options(network(kNone, kNone, kNone)));
  const Model expected = unsplit.scheduler().snapshot();
  for (const auto& split : splits) {
    CAPTURE(static_cast<int>(split[0]), static_cast<int>(split[1]), static_cast<int>(split[2]));
    const RigOptions options = split_options(network(split[0], split[1], split[2]));
    check_near(train(options), whole);
    // Initial values do not depend on the split.
    TrainingRig rig(options);
    const Model model = rig.scheduler().snapshot();
    REQUIRE(model.size() == expected.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
      CHECK(model[i].name == expected[i].name);
      CHECK(model[i].shape == expected[i].shape);
      CHECK(model[i].values == expected[i].values);
    }
  }
}

TEST_CASE("a split model trains with every optimizer and with batch norm's statistics", "[split]") {
  const std::vector<engine::UpdateRule> rules = {engine::Sgd{.momentum = 0.9F, .weight_decay = 0.01F},
                                                 engine::RmsProp{.momentum = 0.5F}};
  for (const engine::UpdateRule& rule : rules) {
    for (const std::int64_t statistic_batches : {0, 3}) {  // three batches: the second learner repeats the last one
      CAPTURE(rule.index(), statistic_batches);
      RigOptions options = split_options(network(kColumns, kRows, kNone, true));
      options.rule = rule;
      options.learning_rate.base = rule.index() == 0 ? 0.02 : 0.002;
      options.statistic_batches = statistic_batches;
      const Trained split = train(options);
      options.layers = network(kNone, kNone, kNone, true);
      check_near(split, train(options));
    }
  }
}

TEST_CASE("each device has only its part of a split layer", "[split]") {
  TrainingRig whole(split_options(network(kNone, kNone, kNone, false, 320)));
  TrainingRig rig(split_options(network(kColumns, kRows, kNone, false, 320)));
  const auto elements = [](TrainingRig& of) { return of.pools().front()->training_plan().parameters().elements(); };
  // dense1 has 320 x 96 weights and 320 biases, dense2 6 x 320 weights.
  constexpr std::int64_t kHalf = (320 * 96 + 320 + 6 * 320) / 2;
  CHECK(elements(whole) - elements(rig) >= kHalf * 9 / 10);  // some of it is padding
  for (const auto& pool : rig.pools()) {
    CHECK(pool->training_plan().graph().metrics().size() == 3);
    const dataflow::ParameterLayout& layout = pool->training_plan().parameters();
    std::map<std::string, engine::Shape> shapes;
    for (const auto& entry : layout.entries()) shapes[entry.name] = entry.spec.shape;
    CHECK(shapes["dense1.weight"] == engine::Shape{160, 96});
    CHECK(shapes["dense1.bias"] == engine::Shape{160});
    CHECK(shapes["dense2.weight"] == engine::Shape{6, 160});
    CHECK(shapes["dense2.bias"] == engine::Shape{6});
    CHECK(layout.unpadded_elements() == whole.pools().front()->training_plan().parameters().unpadded_elements());
  }
}

TEST_CASE("a saved split model is the whole model, and goes on split, whole and on one device", "[split]") {
  const RigOptions options = split_options(network(kColumns, kRows, kNone));
  const std::vector<int> two{1, 1};
  TrainingRig never_stopped(options);
  never_stopped.run(6);
  const scheduler::TrainingState state = never_stopped.scheduler().save();
  never_stopped.run(6);
  const Model expected = never_stopped.scheduler().snapshot();

  const auto go_on = [&](const RigOptions& other, const std::vector<int>& learners) {
    TrainingRig rig(other);
    rig.scheduler().restore(state, other.synchronization, other.learning_rate.with_learners, learners);
    const Model saved = rig.scheduler().snapshot();
    REQUIRE(saved.size() == state.model.size());
    for (std::size_t i = 0; i < saved.size(); ++i) CHECK(saved[i].values == state.model[i].values);
    rig.ring().restart(state.batches);
    rig.run(6);
    return rig.scheduler().snapshot();
  };
  CHECK(tests::flat(go_on(options, two)) == tests::flat(expected));
  CHECK(distance(tests::flat(go_on(split_options(network(kNone, kNone, kNone)), two)), tests::flat(expected)) < 1e-5);
  RigOptions alone = options;
  alone.devices = {"cpu"};
  alone.learners = {1};
  CHECK(tests::flat(go_on(alone, {1})) != tests::flat(expected));  // it has half of the mini-batches
}

TEST_CASE("the devices of a split model exchange the bytes of the formula", "[split]") {
  RigOptions options = split_options(network(kColumns, kRows, kNone));
  TrainingRig rig(options);
  const std::uint64_t before = rig.exchange()->received_bytes(0);
  constexpr int kSteps = 5;
  rig.run(kSteps);
  // A pair exchanges the inputs of the first layer and the outputs of the second one, both ways.
  const std::int64_t floats = 2 * options.batch * (96 + 6);
  CHECK(rig.exchange()->received_bytes(0) - before == static_cast<std::uint64_t>(kSteps * floats) * sizeof(float));
  CHECK(rig.exchange()->received_bytes(1) - before == static_cast<std::uint64_t>(kSteps * floats) * sizeof(float));

  options.layers = network(kColumns, kNone, kNone);
  TrainingRig columns(options);
  const std::uint64_t first = columns.exchange()->received_bytes(0);
  columns.run(kSteps);
  const std::int64_t column_floats = 2 * options.batch * (96 + 10 / 2);  // of the outputs it needs its examples only
  CHECK(columns.exchange()->received_bytes(0) - first ==
        static_cast<std::uint64_t>(kSteps * column_floats) * sizeof(float));

  options.layers = network(kNone, kRows, kNone);
  TrainingRig rows(options);
  const std::uint64_t start = rows.exchange()->received_bytes(0);
  rows.run(kSteps);
  const std::int64_t row_floats = 2 * options.batch * (10 / 2 + 6);  // of the inputs a device needs its columns only
  CHECK(rows.exchange()->received_bytes(0) - start == static_cast<std::uint64_t>(kSteps * row_floats) * sizeof(float));
}

TEST_CASE("a device that fails ends the exchanges of the others, and the run names its error", "[split]") {
  struct Failure {
    const char* label;
    int passing;
  };
  constexpr int kLater = 3;
  // After the last update nobody exchanges anything, so only the scheduler can end the exchanges.
  for (const Failure failure : {Failure{"gradient", 0}, Failure{"update", 0}, Failure{"update", kLater - 1}}) {
    for (const std::size_t device : {0U, 1U}) {
      CAPTURE(failure.label, failure.passing, device);
      FailingDevice failing;
      RigOptions options = split_options(network(kColumns, kRows, kNone));
      options.observer = &failing;
      TrainingRig rig(options);
      rig.run(2);
      failing.fail(rig.pools()[device]->learners().front()->stream(), failure.label, failure.passing);
      try {
        rig.run(kLater);
        FAIL("the training went on");
      } catch (const engine::Error& error) {
        CHECK(error.kind() == engine::ErrorKind::kDevice);
        CHECK_THAT(error.what(), ContainsSubstring(options.devices[device] + " learner 0, mini-batch ") &&
                                     ContainsSubstring(fmt::format("{}: {}", failure.label, kDeviceFailure)));
      }
      CHECK(is_broken_up(rig.pools()));
    }
  }
}

TEST_CASE("a device that fails in an evaluation ends the exchanges of the others", "[split]") {
  FailingDevice failing;
  RigOptions options = split_options(network(kColumns, kRows, kNone));
  options.observer = &failing;
  TrainingRig rig(options);
  failing.fail(rig.pools()[1]->learners().front()->stream(), "evaluate", 2);
  try {
    rig.scheduler().evaluate(rig.test_ring());
    FAIL("the evaluation went on");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDevice);
    CHECK_THAT(error.what(), ContainsSubstring(kDeviceFailure));
  }
  CHECK(is_broken_up(rig.pools()));
}

namespace {

// A link between devices that refuses the all-reduces after the first `passing` ones.
class RefusingLink final : public engine::Collective {
 public:
  RefusingLink(std::unique_ptr<engine::Collective> link, int passing) : link_(std::move(link)), passing_(passing) {}
  int ranks() const noexcept override { return link_->ranks(); }
  void all_reduce_sum(std::span<const engine::CollectivePart> parts, std::size_t elements, const char* label) override {
    if (passing_-- <= 0) engine::fail(engine::ErrorKind::kDevice, "the link has failed");
    link_->all_reduce_sum(parts, elements, label);
  }
  void wait(const engine::Event& event) override { link_->wait(event); }

 private:
  std::unique_ptr<engine::Collective> link_;
  int passing_;
};

// Images that cannot be read once their file system is gone.
class LostImages final : public dataflow::Dataset {
 public:
  LostImages(const MadeUpImages& images, const std::atomic<bool>& are_lost) : images_(images), are_lost_(are_lost) {}

  const std::string& name() const noexcept override { return images_.name(); }
  const dataflow::InputDescription& description() const noexcept override { return images_.description(); }
  std::int64_t size() const noexcept override { return images_.size(); }
  void read(std::int64_t example, const dataflow::ExamplePosition& position,
            std::span<const dataflow::InputTensor> features) const override {
    if (are_lost_) engine::fail(engine::ErrorKind::kData, "the images are lost");
    images_.read(example, position, features);
  }
  void read_label(std::int64_t example, const dataflow::InputTensor& label) const override {
    images_.read_label(example, label);
  }

 private:
  MadeUpImages images_;
  const std::atomic<bool>& are_lost_;
};

}  // namespace

TEST_CASE("a link or an input that fails ends the exchanges of all devices", "[split]") {
  RigOptions options = split_options(network(kColumns, kRows, kNone));
  options.around_collective = [](std::unique_ptr<engine::Collective> link) {
    return std::make_unique<RefusingLink>(std::move(link), 3);
  };
  TrainingRig refused(options);
  CHECK_THROWS_WITH(refused.run(20), ContainsSubstring("the link has failed"));
  CHECK(is_broken_up(refused.pools()));

  std::atomic<bool> are_lost = false;
  options.around_collective = {};
  options.data = [&] {
    return std::make_unique<LostImages>(MadeUpImages(options.examples, options.image, options.classes), are_lost);
  };
  TrainingRig lost(options);
  lost.run(2);
  are_lost = true;
  CHECK_THROWS_WITH(lost.scheduler().evaluate(lost.test_ring()), ContainsSubstring("the images are lost"));
  CHECK(is_broken_up(lost.pools()));
}

}  // namespace arbalest::tests
