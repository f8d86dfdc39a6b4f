// s_sgd keeps the replicas equal, and trains like one learner with the combined mini-batch.
#include <algorithm>
#include <utility>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/host/topology.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using tests::RigOptions;
using tests::TrainingRig;

constexpr std::int64_t kSmallBucket = 256;  // bytes; cuts the networks below into several parts

// A network without dropout and batch norm, which would make several learners differ from one.
std::vector<dataflow::LayerDescription> plain_network() {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 5;
  conv.window = {{3, 3}, {1, 1}};
  return {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"relu1", {"conv"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"hidden", {"relu1"}, tests::dense_layer(20)},
          {"relu2", {"hidden"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"logits", {"relu2"}, tests::dense_layer(3)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

std::vector<dataflow::LayerDescription> network_with_statistics() {
  return {{"hidden", {"image"}, tests::dense_layer(24)},
          {"norm", {"hidden"}, std::make_shared<dataflow::BatchNormLayer>(dataflow::BatchNormLayer::Options{})},
          {"relu", {"norm"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"dropout", {"relu"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"logits", {"dropout"}, tests::dense_layer(3)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

RigOptions reduced(const std::vector<int>& learners, std::int64_t bucket_bytes = kSmallBucket) {
  RigOptions options;
  options.learners = learners;
  options.layers = plain_network();
  options.synchronization = tests::s_sgd_case(bucket_bytes).options;
  return options;
}

// Names two cores of this machine in two ways: as two devices and as one device.
struct TwoCores {
  std::vector<std::string> two;
  std::string one;
};

TwoCores two_cores_or_skip() {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) tests::skip_test("needs two cores");
  return {tests::two_devices(cores), "cpu:" + std::to_string(cores[0]) + "," + std::to_string(cores[1])};
}

std::size_t parts_of(TrainingRig& rig) { return rig.pools().front()->teams().front()->gradient_parts().size(); }

// Checks that all learners have the same trainable weights, bit by bit.
void check_replicas_are_equal(const RigOptions& options) {
  TrainingRig rig(options);
  const auto before = tests::learner_weights(rig);
  const dataflow::ParameterLayout& layout = rig.pools().front()->training_plan().parameters();
  const auto trainable = static_cast<std::size_t>(layout.trainable_elements());
  for (int part = 0; part < 3; ++part) {
    rig.run(7);
    const auto weights = tests::learner_weights(rig);
    CHECK_FALSE(tests::same_bytes(weights.front(), before.front(), trainable));
    for (const auto& other : weights) CHECK(tests::same_bytes(other, weights.front(), trainable));
    // Running statistics differ between learners.
    if (layout.statistic_elements() > 0) CHECK_FALSE(tests::same_bytes(weights[1], weights[0]));
    CHECK(tests::same_bytes(tests::model_weights(rig), tests::model_weights(rig)));
  }
}

std::vector<float> trained(const RigOptions& options, int steps = 20) {
  TrainingRig rig(options);
  rig.run(steps);
  return tests::model_weights(rig);
}

}  // namespace

TEST_CASE("replicas of s_sgd have equal bits with every optimizer, with and without clipping", "[s_sgd]") {
  const std::vector<engine::UpdateRule> rules = {
      engine::Sgd{.momentum = 0.9F, .weight_decay = 0.01F}, engine::Sgd{.momentum = 0.9F, .nesterov = true},
      engine::RmsProp{.momentum = 0.5F}, engine::AdamW{.weight_decay = 0.1F}};
  for (const engine::UpdateRule& rule : rules) {
    for (const bool clips : {false, true}) {
      for (const auto& devices : tests::device_lists()) {
        CAPTURE(rule.index(), clips, devices.size());
        RigOptions options = reduced(tests::spread(3, devices));
        options.devices = devices;
        options.layers = network_with_statistics();
        options.rule = rule;
        options.learning_rate.base = rule.index() == 0 ? 0.05 : 0.01;
        if (clips) options.clip_gradient_norm = 0.3F;
        check_replicas_are_equal(options);
      }
    }
  }
}

TEST_CASE("replicas of s_sgd have equal bits in BF16", "[s_sgd]") {
  if (!tests::cpu_computes_bfloat16()) tests::skip_test("needs a processor with AVX-512");
  RigOptions options = reduced({3});
  options.precision = engine::Precision::kBFloat16;
  options.layers = network_with_statistics();
  check_replicas_are_equal(options);
  options.layers = plain_network();
  check_replicas_are_equal(options);
}

TEST_CASE("s_sgd with k learners equals one learner with k times the mini-batch", "[s_sgd]") {
  for (const int learners : {2, 3, 4, 8}) {
    for (const auto& devices : tests::device_lists()) {
      for (const bool clips : {false, true}) {
        CAPTURE(learners, devices.size(), clips);
        RigOptions options = reduced(tests::spread(learners, devices));
        options.devices = devices;
        if (clips) options.clip_gradient_norm = 0.3F;
        RigOptions alone = options;
        alone.devices = {"cpu"};
        alone.learners = {1};
        alone.batch = options.batch * learners;  // an epoch leaves no example out
        REQUIRE(options.examples % alone.batch == 0);
        const std::vector<float> expected = trained(alone);
        CHECK(tests::distance(trained(options), expected) < 1e-5);
        // The comparison detects a slightly different clipping.
        alone.clip_gradient_norm = 0.28F;
        CHECK(tests::distance(trained(alone), expected) > 1e-3);
      }
    }
  }
}

TEST_CASE("s_sgd trains to the same bytes for every bucket size", "[s_sgd]") {
  for (const auto& devices : tests::device_lists()) {
    RigOptions options = reduced(tests::spread(3, devices), 0);
    options.devices = devices;
    options.layers = network_with_statistics();
    options.clip_gradient_norm = 0.3F;
    TrainingRig whole(options);
    REQUIRE(parts_of(whole) == 1);
    whole.run(20);
    const std::vector<float> expected = tests::model_weights(whole);
    std::size_t most_parts = 0;
    for (const std::int64_t bytes : {1, 4, 100, 1000, 4000, 1 << 30}) {
      CAPTURE(bytes, devices.size());
      options.synchronization.bucket_bytes = bytes;
      TrainingRig rig(options);
      most_parts = std::max(most_parts, parts_of(rig));
      rig.run(20);
      CHECK(tests::same_bytes(tests::model_weights(rig), expected));
    }
    CHECK(most_parts >= 3);
  }
}

TEST_CASE("s_sgd trains to the same bytes on one device and on two with equal powers of two of learners", "[s_sgd]") {
  const TwoCores cores = two_cores_or_skip();
  for (const int each : {1, 2, 4}) {
    CAPTURE(each);
    RigOptions options = reduced({2 * each});
    options.layers = network_with_statistics();
    options.devices = {cores.one};
    const std::vector<float> expected = trained(options);
    options.devices = cores.two;
    options.learners = {each, each};
    CHECK(tests::same_bytes(trained(options), expected));
  }
}

TEST_CASE("the model of s_sgd has the mean of the learners' statistics", "[s_sgd]") {
  RigOptions options = reduced({3});
  options.layers = network_with_statistics();
  TrainingRig rig(options);
  rig.run(9);
  const auto weights = tests::learner_weights(rig);
  rig.scheduler().evaluate(rig.test_ring());  // writes the evaluation weights
  const float* model = rig.pools().front()->evaluation_weights();
  const dataflow::ParameterLayout& layout = rig.pools().front()->training_plan().parameters();
  for (std::int64_t i = 0; i < layout.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i < layout.trainable_elements()) {
      REQUIRE(model[i] == weights[0][at]);
    } else {
      const double mean = (static_cast<double>(weights[0][at]) + weights[1][at] + weights[2][at]) / 3.0;
      REQUIRE(static_cast<double>(model[i]) == Approx(mean).epsilon(1e-6).margin(1e-6));
    }
  }
}
