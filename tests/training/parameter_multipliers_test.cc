// The optimizers under SMA, with factors of the learning rate for single parameters, and parameters without a factor or
// without weight decay, against SMA in double precision.
#include <algorithm>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"

namespace {

using namespace arbalest;
using tests::flatten;
using tests::ReferenceSma;
using tests::RigOptions;
using tests::TrainingRig;

constexpr float kWeightFactor = 0.25F;
constexpr float kBiasFactor = 3.0F;

// Compares training with these factors. A parameter whose factor is 0 is frozen. SMA restarts when the learning rate
// drops.
void compare_with_reference(RigOptions options, float weight_factor, float bias_factor) {
  options.rule_of = [&](const std::string& name) {
    const float factor = name == "logits.bias" ? bias_factor : weight_factor;
    return factor == 0.0F ? dataflow::ParameterRule{.is_frozen = true}
                          : dataflow::ParameterRule{.learning_rate_multiplier = factor};
  };
  constexpr int kRounds = 20;
  TrainingRig rig(options);
  const int learners = rig.scheduler().learners();
  ReferenceSma reference{.learners = learners,
                         .period = options.synchronization.period,
                         .alpha = 1.0 / learners,
                         .central_momentum = options.synchronization.momentum.value(),
                         .rule = options.rule,
                         .clip_gradient_norm = options.clip_gradient_norm};
  reference.start(flatten(rig.scheduler().snapshot()));
  reference.learning_rate_multipliers.assign(reference.central.size(), double{weight_factor});
  std::fill_n(reference.learning_rate_multipliers.rbegin(), options.classes, double{bias_factor});
  if (!options.without_decay.empty()) {  // biases: the last parameter
    reference.decay_multipliers.assign(reference.central.size(), 1.0);
    std::fill_n(reference.decay_multipliers.rbegin(), options.classes, 0.0);
  }
  tests::SoftmaxRegression regression(rig);
  const auto gradient = [&](std::uint64_t task, const std::vector<double>& weights) {
    std::vector<double> g = regression.gradient()(task, weights);
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (reference.learning_rate_multipliers[i] == 0.0) g[i] = 0.0;  // it does not count in the norm
    }
    return g;
  };
  int drops = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double progress =
        static_cast<double>(reference.next_task) / static_cast<double>(rig.order().batches_per_epoch());
    if (options.learning_rate.drops_before(progress) != drops) {
      drops = options.learning_rate.drops_before(progress);
      if (learners > 1) reference.restart();
    }
    reference.round(options.learning_rate.at(progress, learners), gradient);
  }
  const scheduler::Progress progress = rig.run(kRounds);
  CHECK(progress.sums.loss() == Approx(regression.loss_sum()).epsilon(1e-4));
  CHECK(tests::relative_distance(flatten(rig.scheduler().snapshot()), reference.central) < 2e-4);
}

}  // namespace

TEST_CASE("every optimizer applies its rule with SMA's correction and with multipliers, and is reset by a restart",
          "[training]") {
  const std::vector<engine::UpdateRule> rules = {
      engine::Sgd{.weight_decay = 0.01F}, engine::Sgd{.momentum = 0.9F, .nesterov = true, .weight_decay = 0.01F},
      engine::RmsProp{.weight_decay = 0.01F}, engine::RmsProp{.momentum = 0.5F, .weight_decay = 0.01F},
      engine::AdamW{.weight_decay = 0.1F}};
  for (const engine::UpdateRule& rule : rules) {
    for (const int learners : {1, 3}) {
      CAPTURE(rule.index(), learners);
      RigOptions options;
      options.rule = rule;
      options.learners = {learners};
      options.synchronization.period = 2;
      options.synchronization.momentum = 0.5F;
      options.learning_rate.base = 0.02;
      options.learning_rate.curve = scheduler::StepDrops{1.0, 0.5};
      compare_with_reference(options, kWeightFactor, kBiasFactor);
    }
  }
}

TEST_CASE("frozen parameters stay out of the gradient's norm", "[training]") {
  for (const int learners : {1, 3}) {
    for (const bool freezes_weight : {false, true}) {
      CAPTURE(learners, freezes_weight);
      RigOptions options;
      options.learners = {learners};
      options.synchronization.momentum = 0.5F;
      options.rule = engine::Sgd{.momentum = 0.5F, .weight_decay = 0.1F};
      options.clip_gradient_norm = 0.02F;
      compare_with_reference(options, freezes_weight ? 0.0F : 1.0F, freezes_weight ? 1.0F : 0.0F);
    }
  }
}

TEST_CASE("gradients are clipped, and biases have no weight decay", "[training]") {
  for (const int learners : {1, 3}) {
    CAPTURE(learners);
    RigOptions options;
    options.learners = {learners};
    options.rule = engine::Sgd{.momentum = 0.9F, .weight_decay = 0.2F};
    options.synchronization.momentum = 0.0F;
    options.clip_gradient_norm = 0.4F;  // the norms fall from 0.9 to 0.2
    options.without_decay = {dataflow::ParameterKind::kBias};
    compare_with_reference(options, 1.0F, 1.0F);
  }
}
