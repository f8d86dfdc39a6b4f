// The whole road (input, learners, scheduler, averaging) against SMA in plain double arithmetic, over many rounds.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/reference_sma.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"

namespace {

using arbalest::tests::ReferenceSma;
using arbalest::tests::RigOptions;
using arbalest::tests::TrainingRig;

// Mean loss and its gradient of softmax regression: weights [classes, pixels], then bias [classes].
struct SoftmaxRegression {
  std::int64_t pixels;
  std::int64_t classes;
  double loss_sum = 0.0;

  std::vector<double> gradient(TrainingRig& rig, std::uint64_t task, const std::vector<double>& parameters) {
    const auto batch = static_cast<std::size_t>(rig.order().batch_size());
    std::vector<std::int64_t> examples(batch);
    rig.order().indices(task, examples);
    std::vector<double> result(parameters.size(), 0.0);
    std::vector<float> image(static_cast<std::size_t>(pixels));
    for (const std::int64_t example : examples) {
      rig.data().read(example, {}, image.data());
      const auto label = static_cast<std::size_t>(rig.data().label(example));
      std::vector<double> logits(static_cast<std::size_t>(classes));
      double sum = 0.0;
      for (std::size_t c = 0; c < logits.size(); ++c) {
        logits[c] = parameters[static_cast<std::size_t>(classes * pixels) + c];
        for (std::size_t i = 0; i < image.size(); ++i) logits[c] += parameters[c * image.size() + i] * image[i];
        sum += std::exp(logits[c]);
      }
      loss_sum += std::log(sum) - logits[label];
      for (std::size_t c = 0; c < logits.size(); ++c) {
        const double error = (std::exp(logits[c]) / sum - (c == label ? 1.0 : 0.0)) / static_cast<double>(batch);
        for (std::size_t i = 0; i < image.size(); ++i) result[c * image.size() + i] += error * image[i];
        result[static_cast<std::size_t>(classes * pixels) + c] += error;
      }
    }
    return result;
  }
};

std::vector<double> flatten(const std::vector<arbalest::dataflow::NamedTensor>& tensors) {
  std::vector<double> values;
  for (const auto& tensor : tensors) values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  return values;
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

void compare_with_reference(const RigOptions& options, int rounds) {
  TrainingRig rig(options);
  ReferenceSma reference{.learners = rig.scheduler().learners(),
                         .period = options.averaging.period,
                         .alpha = options.averaging.alpha_for(rig.scheduler().learners()),
                         .central_momentum = options.averaging.central_momentum,
                         .rule = options.rule,
                         .clip_gradient_norm = options.clip_gradient_norm};
  reference.start(flatten(rig.scheduler().snapshot()));
  if (!options.without_decay.empty()) {  // biases: the last parameter
    reference.decay_multipliers.assign(reference.central.size(), 1.0);
    std::fill_n(reference.decay_multipliers.rbegin(), options.classes, 0.0);
  }
  SoftmaxRegression regression{options.image.elements(), options.classes};
  int drops = 0;
  for (int round = 0; round < rounds; ++round) {
    const double progress =
        static_cast<double>(reference.next_task) / static_cast<double>(rig.order().batches_per_epoch());
    if (options.learning_rate.drops_before(progress) != drops) {
      drops = options.learning_rate.drops_before(progress);
      if (reference.learners > 1) reference.restart();
    }
    reference.round(
        options.learning_rate.at(progress, reference.learners),
        [&](std::uint64_t task, const std::vector<double>& w) { return regression.gradient(rig, task, w); });
  }
  const auto progress = rig.run(rounds);
  CHECK(progress.tasks == static_cast<std::int64_t>(reference.next_task));
  CHECK(progress.loss_sum == Approx(regression.loss_sum).epsilon(1e-4));
  CHECK(relative_distance(flatten(rig.scheduler().snapshot()), reference.central) < 2e-4);
}

}  // namespace

TEST_CASE("training on one device computes SMA", "[training]") {
  for (const int learners : {1, 2, 3, 4, 8}) {
    for (const int period : {1, 3}) {
      CAPTURE(learners, period);
      RigOptions options;
      options.learners = {learners};
      options.averaging.period = period;
      options.averaging.central_momentum = 0.5F;
      compare_with_reference(options, 40);
    }
  }
}

TEST_CASE("training on two devices computes SMA", "[training]") {
  const auto devices = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
  if (devices.empty()) arbalest::tests::skip_test("needs two cores");
  for (const int period : {1, 3}) {
    for (const auto& [first, second] : {std::pair(1, 1), std::pair(2, 1), std::pair(2, 2), std::pair(4, 4)}) {
      CAPTURE(period, first, second);
      RigOptions options;
      options.devices = devices;
      options.learners = {first, second};
      options.averaging.period = period;
      options.averaging.central_momentum = 0.7F;
      compare_with_reference(options, 40);
    }
  }
}

TEST_CASE("a fixed alpha and no momenta are obeyed", "[training]") {
  RigOptions options;
  options.learners = {3};
  options.rule = arbalest::engine::Sgd{};
  options.averaging.alpha = 0.1F;
  options.averaging.central_momentum = 0.0F;
  compare_with_reference(options, 30);
}

TEST_CASE("averaging restarts where the learning rate drops", "[training]") {
  for (const int learners : {1, 3}) {
    for (const bool is_regular : {false, true}) {
      CAPTURE(learners, is_regular);
      RigOptions options;
      options.learners = {learners};
      options.averaging.central_momentum = 0.9F;
      if (is_regular) {
        options.learning_rate.curve = arbalest::scheduler::StepDrops{0.5, 0.5};
      } else {
        options.learning_rate.curve = arbalest::scheduler::MultistepDrops{{{1.0, 0.5}, {1.5, 0.1}}};
      }
      compare_with_reference(options, 24 * 2 / learners);  // 24 mini-batches an epoch
    }
  }
}

TEST_CASE("a continuous learning rate holds for a round, and averaging goes on", "[training]") {
  RigOptions options;
  options.learners = {3};
  options.averaging.central_momentum = 0.9F;
  options.averaging.period = 2;
  options.learning_rate.curve = arbalest::scheduler::CosineDecay{.epochs = 1.5};
  options.learning_rate.warm_up = {.epochs = 0.5, .start_factor = 0.0};
  compare_with_reference(options, 8);
}

TEST_CASE("every optimizer computes its rule with SMA's correction, and begins anew at a restart", "[training]") {
  namespace engine = arbalest::engine;
  const std::vector<engine::UpdateRule> rules = {
      engine::Sgd{.momentum = 0.9F, .nesterov = true, .weight_decay = 0.01F}, engine::RmsProp{.weight_decay = 0.01F},
      engine::RmsProp{.momentum = 0.5F}, engine::AdamW{.weight_decay = 0.1F}};
  for (const engine::UpdateRule& rule : rules) {
    for (const int learners : {1, 3}) {
      CAPTURE(rule.index(), learners);
      RigOptions options;
      options.rule = rule;
      options.learners = {learners};
      options.averaging.period = 2;
      options.averaging.central_momentum = 0.5F;
      options.learning_rate.base = rule.index() == 0 ? 0.1 : 0.02;
      options.learning_rate.curve = arbalest::scheduler::StepDrops{1.0, 0.5};
      compare_with_reference(options, 16);  // one learner sees one drop, three see three
    }
  }
}

TEST_CASE("gradients are clipped, and biases left without decay", "[training]") {
  for (const int learners : {1, 3}) {
    CAPTURE(learners);
    RigOptions options;
    options.learners = {learners};
    options.rule = arbalest::engine::Sgd{.momentum = 0.9F, .weight_decay = 0.2F};
    options.clip_gradient_norm = 0.4F;  // of norms that go from 0.9 to 0.2
    options.without_decay = {arbalest::dataflow::ParameterKind::kBias};
    compare_with_reference(options, 30);
  }
}
