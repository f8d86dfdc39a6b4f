// Input, learners, scheduler and averaging together, compared with SMA in double precision over many rounds.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"

namespace {

using arbalest::tests::flatten;
using arbalest::tests::ReferenceSma;
using arbalest::tests::relative_distance;
using arbalest::tests::RigOptions;
using arbalest::tests::TrainingRig;

void compare_with_reference(const RigOptions& options, int rounds) {
  TrainingRig rig(options);
  const int learners = rig.scheduler().learners();
  ReferenceSma reference{.learners = learners,
                         .period = options.synchronization.period,
                         .alpha = options.synchronization.pull ? double{*options.synchronization.pull} : 1.0 / learners,
                         .central_momentum = options.synchronization.momentum.value(),
                         .rule = options.rule,
                         .clip_gradient_norm = options.clip_gradient_norm};
  reference.start(flatten(rig.scheduler().snapshot()));
  if (!options.without_decay.empty()) {  // biases: the last parameter
    reference.decay_multipliers.assign(reference.central.size(), 1.0);
    std::fill_n(reference.decay_multipliers.rbegin(), options.classes, 0.0);
  }
  arbalest::tests::SoftmaxRegression regression(rig);
  int drops = 0;
  for (int round = 0; round < rounds; ++round) {
    const double progress =
        static_cast<double>(reference.next_task) / static_cast<double>(rig.order().batches_per_epoch());
    if (options.learning_rate.drops_before(progress) != drops) {
      drops = options.learning_rate.drops_before(progress);
      if (reference.learners > 1) reference.restart();
    }
    reference.round(options.learning_rate.at(progress, reference.learners), regression.gradient());
  }
  const auto progress = rig.run(rounds);
  CHECK(progress.tasks == static_cast<std::int64_t>(reference.next_task));
  CHECK(progress.sums.loss() == Approx(regression.loss_sum()).epsilon(1e-4));
  CHECK(relative_distance(flatten(rig.scheduler().snapshot()), reference.central) < 2e-4);
}

}  // namespace

TEST_CASE("training on one device agrees with the SMA reference", "[training]") {
  for (const int learners : {1, 2, 3, 4, 8}) {
    for (const int period : {1, 3}) {
      CAPTURE(learners, period);
      RigOptions options;
      options.learners = {learners};
      options.synchronization.period = period;
      options.synchronization.momentum = 0.5F;
      compare_with_reference(options, 40);
    }
  }
}

TEST_CASE("training on two devices agrees with the SMA reference", "[training]") {
  const auto devices = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
  if (devices.empty()) arbalest::tests::skip_test("needs two cores");
  for (const int period : {1, 3}) {
    for (const auto& [first, second] : {std::pair(1, 1), std::pair(2, 1), std::pair(2, 2), std::pair(4, 4)}) {
      CAPTURE(period, first, second);
      RigOptions options;
      options.devices = devices;
      options.learners = {first, second};
      options.synchronization.period = period;
      options.synchronization.momentum = 0.7F;
      compare_with_reference(options, 40);
    }
  }
}

TEST_CASE("a fixed alpha without momentum agrees with the SMA reference", "[training]") {
  RigOptions options;
  options.learners = {3};
  options.rule = arbalest::engine::Sgd{};
  options.synchronization.pull = 0.1F;
  options.synchronization.momentum = 0.0F;
  compare_with_reference(options, 30);
}

TEST_CASE("averaging restarts when the learning rate drops", "[training]") {
  for (const int learners : {1, 3}) {
    for (const bool is_regular : {false, true}) {
      CAPTURE(learners, is_regular);
      RigOptions options;
      options.learners = {learners};
      options.synchronization.momentum = 0.9F;
      if (is_regular) {
        options.learning_rate.curve = arbalest::scheduler::StepDrops{0.5, 0.5};
      } else {
        options.learning_rate.curve = arbalest::scheduler::MultistepDrops{{{1.0, 0.5}, {1.5, 0.1}}};
      }
      compare_with_reference(options, 24 * 2 / learners);  // 24 mini-batches an epoch
    }
  }
}

TEST_CASE("a continuous learning rate is constant within a round, and averaging does not restart", "[training]") {
  RigOptions options;
  options.learners = {3};
  options.synchronization.momentum = 0.9F;
  options.synchronization.period = 2;
  options.learning_rate.curve = arbalest::scheduler::CosineDecay{.epochs = 1.5};
  options.learning_rate.warm_up = {.epochs = 0.5, .start_factor = 0.0};
  compare_with_reference(options, 8);
}

TEST_CASE("every optimizer applies its rule with SMA's correction, and is reset by a restart", "[training]") {
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
      options.synchronization.period = 2;
      options.synchronization.momentum = 0.5F;
      options.learning_rate.base = rule.index() == 0 ? 0.1 : 0.02;
      options.learning_rate.curve = arbalest::scheduler::StepDrops{1.0, 0.5};
      compare_with_reference(options, 16);  // one learner sees one drop, three learners see three
    }
  }
}

TEST_CASE("gradients are clipped, and biases have no weight decay", "[training]") {
  for (const int learners : {1, 3}) {
    CAPTURE(learners);
    RigOptions options;
    options.learners = {learners};
    options.rule = arbalest::engine::Sgd{.momentum = 0.9F, .weight_decay = 0.2F};
    options.clip_gradient_norm = 0.4F;  // the norms fall from 0.9 to 0.2
    options.without_decay = {arbalest::dataflow::ParameterKind::kBias};
    compare_with_reference(options, 30);
  }
}
