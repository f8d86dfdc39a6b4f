// A small network with one layer of each kind, trained for a few rounds, for tests of training on every kind of device.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/images/pool2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "tests/support/catch.h"
#include "tests/support/staleness.h"
#include "tests/support/training_rig.h"
#include "tests/support/weights.h"

namespace arbalest::tests {

inline std::vector<dataflow::LayerDescription> small_network() {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 5;
  conv.window = {{3, 3}, {1, 1}};
  dataflow::Pool2dLayer::Options pool;
  pool.kind = engine::PoolKind::kMax;
  pool.window = {{2, 2}, {2, 2}};
  dataflow::DenseLayer::Options dense;
  dense.units = 3;
  return {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"pool", {"conv"}, std::make_shared<dataflow::Pool2dLayer>(pool)},
          {"relu", {"pool"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"dropout", {"relu"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"logits", {"dropout"}, std::make_shared<dataflow::DenseLayer>(dense)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()},
          {"accuracy", {"logits", "label"}, std::make_shared<dataflow::AccuracyLayer>()}};
}

// Applies batch norm to images, followed by ReLU, and then to features, without ReLU.
inline std::vector<dataflow::LayerDescription> normalized_network() {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 5;
  conv.window = {{3, 3}, {1, 1}};
  conv.has_bias = false;
  dataflow::DenseLayer::Options hidden;
  hidden.units = 6;
  dataflow::DenseLayer::Options logits;
  logits.units = 3;
  const auto norm = std::make_shared<dataflow::BatchNormLayer>(dataflow::BatchNormLayer::Options{});
  return {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"norm1", {"conv"}, norm},
          {"relu", {"norm1"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"hidden", {"relu"}, std::make_shared<dataflow::DenseLayer>(hidden)},
          {"norm2", {"hidden"}, norm},
          {"logits", {"norm2"}, std::make_shared<dataflow::DenseLayer>(logits)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

inline RigOptions options_on(std::vector<std::string> devices, std::vector<int> learners) {
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

inline Trained train(const RigOptions& options, int iterations = 12) {
  TrainingRig rig(options);
  Trained trained;
  trained.loss = rig.run(iterations).sums.loss();
  trained.evaluation = rig.scheduler().evaluate(rig.test_ring());
  trained.weights = model_weights(rig);
  return trained;
}

// |a - b| / |b|
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

// Compares a GPU's training with the CPU's.
inline void check_close(const Trained& gpu, const Trained& cpu) {
  CHECK(distance(gpu.weights, cpu.weights) < 1e-5);
  CHECK(std::abs(gpu.loss - cpu.loss) < 1e-5 * cpu.loss);
  CHECK(std::abs(gpu.evaluation.loss() - cpu.evaluation.loss()) < 1e-5 * cpu.evaluation.loss());
  dataflow::MetricSums counts = gpu.evaluation.sums;  // of right predictions, but for the loss
  counts.values[engine::kLossSum] = cpu.evaluation.sums.loss();
  CHECK(counts.values == cpu.evaluation.sums.values);
}

// Trains until the loss diverges. The error must name learner, mini-batch and remedy, and the model must stay finite.
inline void check_diverges(TrainingRig& rig) {
  try {
    rig.run(60);
    FAIL("the run did not diverge");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDiverged);
    CHECK_THAT(error.what(), ContainsSubstring("learner ") && ContainsSubstring("mini-batch ") &&
                                 ContainsSubstring("learning_rate.base"));
  }
  for (const auto& tensor : rig.scheduler().snapshot()) {
    for (const float value : tensor.values) REQUIRE(std::isfinite(value));
  }
  CHECK_FALSE(rig.scheduler().evaluate(rig.test_ring()).examples == 0);  // a run may go back from there
}

// Changes the number of learners of a scheme without rounds. Each change keeps the model, and all learners train on.
inline void check_resizes(RigOptions options, int mini_batches_of_step) {
  options.learners = {1};
  options.most_learners = 4;
  TrainingRig rig(options);
  for (const int learners : {1, 4, 2, 1, 3}) {
    CAPTURE(learners);
    const std::vector<float> model = model_weights(rig);
    rig.resize({learners});
    CHECK(same_bytes(model_weights(rig), model));
    const scheduler::Progress progress = rig.run(4);
    CHECK(progress.tasks == 4 * learners * mini_batches_of_step);
    CHECK(count_of(progress.staleness) == (learners == 1 ? 0 : 4 * learners));
    CHECK_FALSE(same_bytes(model_weights(rig), model));
  }
}

inline void check_equal(const Trained& a, const Trained& b) {
  CHECK(a.loss == b.loss);
  CHECK(a.weights == b.weights);
  CHECK(a.evaluation.examples == b.evaluation.examples);
  CHECK(a.evaluation.sums.values == b.evaluation.sums.values);
}

}  // namespace arbalest::tests
