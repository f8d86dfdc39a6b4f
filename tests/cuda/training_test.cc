// The whole road on GPUs, on the stand-in of CUDA's libraries: what it computes against the CPU device, in any order
// that the streams allow, as graphs and operator by operator.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/classification.h"
#include "dataflow/layers/conv2d.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/pool2d.h"
#include "engine/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/training_rig.h"

namespace {

using namespace arbalest;
using tests::RigOptions;
using tests::TrainingRig;

std::vector<dataflow::LayerDescription> small_network() {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 5;
  conv.window = {{3, 3}, {1, 1}};
  dataflow::Pool2dLayer::Options pool;
  pool.kind = engine::PoolKind::kMax;
  pool.window = {{2, 2}, {2, 2}};
  dataflow::DenseLayer::Options dense;
  dense.units = 3;
  return {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"pool",
           {"conv"},
           std::make_shared<dataflow::Pool2dLayer>(pool)},
          {"relu", {"pool"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"dropout", {"relu"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"logits", {"dropout"}, std::make_shared<dataflow::DenseLayer>(dense)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()},
          {"accuracy", {"logits", "label"}, std::make_shared<dataflow::AccuracyLayer>()}};
}

RigOptions options_on(std::vector<std::string> devices, std::vector<int> learners) {
  RigOptions options;
  options.devices = std::move(devices);
  options.learners = std::move(learners);
  options.image = {2, 6, 6};
  options.layers = small_network();
  return options;
}

struct Trained {
  std::vector<float> weights;
  double loss = 0.0;
  scheduler::Evaluation evaluation;
};

Trained train(const RigOptions& options) {
  TrainingRig rig(options);
  Trained trained;
  trained.loss = rig.run(12).loss_sum;
  trained.evaluation = rig.scheduler().evaluate(rig.test_ring());
  for (const auto& tensor : rig.scheduler().snapshot()) {
    trained.weights.insert(trained.weights.end(), tensor.values.begin(), tensor.values.end());
  }
  return trained;
}

Trained train_on_stand_in(const RigOptions& options, std::uint64_t seed = 1) {
  tests::cuda_stand_in::reset({.devices = static_cast<int>(options.devices.size())}, seed);
  Trained trained = train(options);
  tests::cuda_stand_in::require_clean();
  return trained;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

void check_equal(const Trained& a, const Trained& b) {
  CHECK(a.loss == b.loss);
  CHECK(a.weights == b.weights);
}

}  // namespace

TEST_CASE("learners on GPUs train as learners on the CPU do", "[training]") {
  const auto [gpus, learners] = GENERATE(std::pair(1, 1), std::pair(1, 3), std::pair(2, 2));
  std::vector<std::string> devices;
  for (int d = 0; d < gpus; ++d) devices.push_back("cuda:" + std::to_string(d));
  const Trained gpu = train_on_stand_in(options_on(devices, std::vector<int>(devices.size(), learners)));
  const Trained cpu = train(options_on({"cpu"}, {gpus * learners}));
  CHECK(distance(gpu.weights, cpu.weights) < 1e-5);
  CHECK(std::abs(gpu.loss - cpu.loss) < 1e-5 * cpu.loss);
  CHECK(std::abs(gpu.evaluation.loss - cpu.evaluation.loss) < 1e-5 * cpu.evaluation.loss);
  CHECK(gpu.evaluation.accuracy == cpu.evaluation.accuracy);
}

TEST_CASE("GPUs give the same bytes in whatever order their streams run", "[training]") {
  const RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
  const Trained expected = train_on_stand_in(options);
  for (std::uint64_t seed = 2; seed <= 20; ++seed) check_equal(train_on_stand_in(options, seed), expected);
}

TEST_CASE("without graphs a GPU gives the same bytes", "[training]") {
  RigOptions options = options_on({"cuda:0"}, {2});
  const Trained expected = train_on_stand_in(options);
  options.graphs = false;
  check_equal(train_on_stand_in(options), expected);
}

TEST_CASE("an operator that fails on a GPU ends training and is named", "[training]") {
  tests::cuda_stand_in::reset();
  RigOptions options = options_on({"cuda:0"}, {2});
  options.graphs = false;
  std::string message;
  {
    TrainingRig rig(options);
    rig.run(1);
    tests::cuda_stand_in::fail_execution(cudaErrorIllegalAddress, 5);
    try {
      rig.run(3);
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kDevice);
      message = error.what();
    }
  }
  CHECK_THAT(message, Catch::Matchers::Contains("cuda:0 learner"));
}
