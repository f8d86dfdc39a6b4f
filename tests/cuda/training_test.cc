// Complete trainings on one GPU, compared with the CPU device: repeated, with graphs, and operator by operator. Runs on
// the stand-in of CUDA's libraries and on a real GPU.
#include <algorithm>
#include <cstdio>

#include "tests/cuda/gpus.h"
#include "tests/support/small_training.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

// Mean losses of LeNet's first steps.
std::vector<double> first_losses(const std::string& device) {
  RigOptions options;
  options.devices = {device};
  options.layers = arbalest::tests::lenet();
  options.image = {1, 28, 28};
  options.classes = 10;
  options.batch = 32;
  options.examples = 3200;
  options.learning_rate.base = 0.01;
  options.rule = engine::Sgd{.momentum = 0.9F, .weight_decay = 5e-4F};
  TrainingRig rig(options);
  std::vector<double> losses;
  for (int step = 0; step < kFirstSteps; ++step) {
    const scheduler::Progress progress = rig.run(1);
    losses.push_back(progress.sums.loss() / static_cast<double>(progress.examples));
  }
  return losses;
}

}  // namespace

TEST_CASE("every optimizer trains on a GPU like on the CPU, with clipped gradients", "[training]") {
  const auto train_on = [](const std::string& device, const engine::UpdateRule& rule) {
    RigOptions options = options_on({device}, {2});
    options.rule = rule;
    options.learning_rate.base = 0.01;
    options.clip_gradient_norm = 0.5F;
    options.without_decay = {dataflow::ParameterKind::kBias};
    return train(options);
  };
  use_gpus(1);
  const std::vector<engine::UpdateRule> rules = {engine::Sgd{.momentum = 0.9F, .nesterov = true, .weight_decay = 0.01F},
                                                 // Gradients close to rounding errors must not make a step.
                                                 engine::RmsProp{.momentum = 0.5F, .epsilon = 1e-3F},
                                                 engine::AdamW{.epsilon = 1e-3F}};
  for (const engine::UpdateRule& rule : rules) {
    CAPTURE(rule.index());
    check_close(train_on("cuda:0", rule), train_on("cpu", rule));
  }
}

TEST_CASE("learners on a GPU train like learners on the CPU", "[training]") {
  const int learners = GENERATE(1, 3);
  use_gpus(1);
  check_close(train(options_on({"cuda:0"}, {learners})), train(options_on({"cpu"}, {learners})));
}

TEST_CASE("a GPU trains to the same bytes from data on the device and from a ring, and like the CPU", "[training]") {
  use_gpus(1);
  RigOptions options = options_on({"cuda:0"}, {2});
  options.input = RigInput::kResident;
  const Trained cached = train(options);
  options.graphs = false;
  check_equal(train(options), cached);
  options.input = RigInput::kBytes;
  check_equal(train(options), cached);
  options.devices = {"cpu"};
  options.input = RigInput::kResident;
  check_close(cached, train(options));
}

TEST_CASE("the first losses of LeNet on a GPU agree with the CPU", "[training][first_losses]") {
  use_gpus(1);
  const std::vector<double> gpu = first_losses("cuda:0");
  const std::vector<double> cpu = first_losses("cpu");
  double largest = 0.0;
  for (std::size_t step = 0; step < cpu.size(); ++step) {
    CAPTURE(step, gpu[step], cpu[step]);
    const double difference = std::abs(gpu[step] - cpu[step]);
    CHECK(difference < 1e-3);
    largest = std::max(largest, difference);
  }
  std::printf("largest difference of %zu losses, %.3f to %.3f: %.1e\n", cpu.size(), cpu.front(), cpu.back(), largest);
}

TEST_CASE("batch norm and its running statistics on a GPU agree with the CPU, and are repeatable", "[training]") {
  const int learners = GENERATE(1, 3);
  const int statistic_batches = GENERATE(0, 5);
  use_gpus(1);
  const auto options_for = [&](const std::string& device) {
    RigOptions options = options_on({device}, {learners});
    options.layers = normalized_network();
    options.statistic_batches = statistic_batches;
    options.synchronization.period = 2;
    options.learning_rate.base = 0.02;
    options.clip_gradient_norm = 2.0F;
    return options;
  };
  const Trained gpu = train(options_for("cuda:0"));
  const Trained cpu = train(options_for("cpu"));
  CHECK(distance(gpu.weights, cpu.weights) < 1e-4);
  CHECK(std::abs(gpu.evaluation.loss() - cpu.evaluation.loss()) < 1e-4 * cpu.evaluation.loss());
  RigOptions options = options_for("cuda:0");
  check_equal(train(options), gpu);
  options.graphs = false;
  check_equal(train(options), gpu);
  options.precision = engine::Precision::kBFloat16;
  const Trained halves = train(options);
  CHECK(distance(halves.weights, gpu.weights) < 5e-2);
  check_equal(train(options), halves);
}

TEST_CASE("a GPU gives the same bytes in every run", "[training][repeatability]") {
  use_gpus(1);
  const RigOptions options = options_on({"cuda:0"}, {3});
  const Trained expected = train(options);
  for (int run = 0; run < 3; ++run) check_equal(train(options), expected);
}

TEST_CASE("without graphs a GPU gives the same bytes", "[training][repeatability]") {
  use_gpus(1);
  RigOptions options = options_on({"cuda:0"}, {2});
  const Trained expected = train(options);
  options.graphs = false;
  check_equal(train(options), expected);
}

}  // namespace arbalest::tests
