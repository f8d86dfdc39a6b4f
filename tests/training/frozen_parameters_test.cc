// Training with frozen parameters: their bytes stay.
#include <bit>
#include <set>
#include <string>

#include "engine/backends/devices.h"
#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/schemes.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

namespace {

using Model = std::vector<dataflow::NamedTensor>;

dataflow::ParameterRuleOf freezing(const std::set<std::string>& layers) {
  return [layers](const std::string& name) {
    return dataflow::ParameterRule{.is_frozen = layers.contains(name.substr(0, name.rfind('.')))};
  };
}

RigOptions options_freezing(const std::set<std::string>& layers, const std::vector<int>& learners) {
  RigOptions options = options_on({"cpu"}, learners);
  options.layers = normalized_network();
  options.rule_of = freezing(layers);
  options.rule = engine::Sgd{.momentum = 0.9F, .weight_decay = 0.1F};
  options.learning_rate.base = 0.02;
  // There is nothing to re-estimate if all statistics are frozen.
  options.statistic_batches = layers.contains("norm1") && layers.contains("norm2") ? 0 : 3;
  return options;
}

std::vector<std::uint32_t> bits_of(const dataflow::NamedTensor& tensor) {
  std::vector<std::uint32_t> bits;
  for (const float value : tensor.values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// A model with every kind of number in its frozen parts.
Model unusual(Model model) {
  for (dataflow::NamedTensor& tensor : model) {
    if (tensor.name == "conv.weight") tensor.values[0] = -0.0F;
    if (tensor.name == "conv.weight") tensor.values[1] = 1e-40F;
    if (tensor.name == "norm1.running_mean") tensor.values[0] = 0.1F;
    if (tensor.name == "norm1.running_var") tensor.values[0] = 3.0F;
  }
  return model;
}

// Frozen layers must be the same bit by bit, and all others must have changed.
void check_frozen(const Model& before, const Model& after, const std::set<std::string>& layers) {
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CAPTURE(before[i].name);
    const bool is_frozen = layers.contains(before[i].name.substr(0, before[i].name.rfind('.')));
    CHECK((bits_of(before[i]) == bits_of(after[i])) == is_frozen);
  }
}

// Trains from an unusual model and checks it after some iterations, and again with another number of learners.
void check_training(RigOptions options, const std::set<std::string>& layers) {
  TrainingRig rig(options);
  const Model before = unusual(rig.scheduler().snapshot());
  rig.scheduler().load(before);
  for (int part = 0; part < 3; ++part) {
    rig.run(7);
    rig.scheduler().evaluate(rig.test_ring());
    check_frozen(before, rig.scheduler().snapshot(), layers);
    check_frozen(before, rig.scheduler().save().model, layers);
    if (options.most_learners == 0) continue;
    rig.resize(std::vector<int>(options.learners.size(), part == 0 ? 3 : 1));
  }
  for (const auto& pool : rig.pools()) {
    for (const auto& learner : pool->learners()) {
      check_frozen(before, pool->training_plan().parameters().to_canonical(pool->device(), learner->weights()), layers);
    }
  }
}

}  // namespace

TEST_CASE("frozen parameters and statistics keep their bytes under every scheme", "[training]") {
  const std::set<std::string> layers = {"conv", "norm1"};
  for (const sma::Options& scheme : short_schemes()) {
    for (const int learners : {1, 2}) {
      CAPTURE(name_of(scheme), learners);
      RigOptions options = options_freezing(layers, {learners});
      options.synchronization = scheme;
      options.most_learners = 3;
      options.moving_average_epochs = 0.2;
      check_training(options, layers);
    }
  }
}

TEST_CASE("frozen parameters keep their bytes on two devices, with every optimizer and in between others",
          "[training]") {
  const auto devices = two_devices(engine::host::allowed_cores());
  if (devices.empty()) skip_test("needs two cores");
  const std::vector<engine::UpdateRule> rules = {engine::Sgd{.weight_decay = 0.1F},
                                                 engine::RmsProp{.momentum = 0.5F, .weight_decay = 0.1F},
                                                 engine::AdamW{.weight_decay = 0.1F}};
  const std::set<std::string> layers = {"hidden", "norm2", "norm1"};
  for (const engine::UpdateRule& rule : rules) {
    for (const sma::Options& scheme : {sma::defaults_of(sma::Scheme::kSma), sma::defaults_of(sma::Scheme::kSSgd)}) {
      CAPTURE(rule.index(), name_of(scheme));
      RigOptions options = options_freezing(layers, {2, 1});
      options.devices = devices;
      options.rule = rule;
      options.synchronization = scheme;
      check_training(options, layers);
    }
  }
}

TEST_CASE("a frozen batch norm trains the layers below like the constant function that it is", "[training]") {
  RigOptions options = options_freezing({"norm1", "norm2"}, {2});
  TrainingRig frozen(options);
  RigOptions without = options;
  without.rule_of = {};
  without.layers = normalized_network();
  // The initial statistics are mean 0 and variance 1, so the layer multiplies by 1 / sqrt(1 + epsilon).
  std::erase_if(without.layers, [](const dataflow::LayerDescription& layer) { return layer.name.starts_with("norm"); });
  for (dataflow::LayerDescription& layer : without.layers) {
    for (std::string& input : layer.inputs) {
      if (input == "norm1") input = "conv";
      if (input == "norm2") input = "hidden";
    }
  }
  TrainingRig plain(without);
  Model start = plain.scheduler().snapshot();
  Model with_norms = frozen.scheduler().snapshot();
  for (dataflow::NamedTensor& tensor : with_norms) {
    for (const dataflow::NamedTensor& same : start) {
      if (same.name == tensor.name) tensor.values = same.values;
    }
  }
  frozen.scheduler().load(with_norms);
  plain.scheduler().load(start);
  CHECK(frozen.run(10).sums.loss() == Approx(plain.run(10).sums.loss()).epsilon(1e-3));
  const Model expected = plain.scheduler().snapshot();
  for (const dataflow::NamedTensor& tensor : frozen.scheduler().snapshot()) {
    for (const dataflow::NamedTensor& same : expected) {
      if (same.name == tensor.name) CHECK(distance(tensor.values, same.values) < 1e-3);
    }
  }
}

TEST_CASE("frozen parameters are read in low precision, too", "[training]") {
  const std::set<std::string> layers = {"conv", "norm1", "hidden"};
  RigOptions options = options_freezing(layers, {2});
  options.precision = engine::Precision::kBFloat16;
  options.statistic_batches = 0;  // both evaluate with the model's statistics
  const std::string problem = engine::precision_problem(engine::parse_device("cpu"), options.precision);
  if (!problem.empty()) skip_test(problem);
  RigOptions all = options;
  all.rule_of = {};
  TrainingRig frozen(options);
  TrainingRig plain(all);
  const Model model = unusual(plain.scheduler().snapshot());
  frozen.scheduler().load(model);
  plain.scheduler().load(model);
  CHECK(frozen.scheduler().evaluate(frozen.test_ring()).loss() == plain.scheduler().evaluate(plain.test_ring()).loss());
  options.most_learners = 3;
  check_training(options, layers);
}

TEST_CASE("frozen parameters have no place in what is averaged, and in the optimizer's state", "[training]") {
  const TrainingRig all(options_freezing({}, {1}));
  const TrainingRig head(options_freezing({"conv", "norm1", "hidden", "norm2"}, {1}));
  const dataflow::ParameterLayout& whole = all.pools().front()->training_plan().parameters();
  const dataflow::ParameterLayout& rest = head.pools().front()->training_plan().parameters();
  CHECK(rest.elements() == whole.elements());
  CHECK(rest.parameters() == whole.parameters());
  CHECK(rest.trained_parameters() == 6 * 3 + 3);
  CHECK(rest.statistic_elements() == 0);
  CHECK(rest.moving_elements() == rest.trainable_elements());
  CHECK(rest.update_ranges().back().end == rest.moving_elements());
  CHECK(whole.frozen_elements() == 0);
  CHECK(rest.frozen_elements() > 0);
}

}  // namespace arbalest::tests
