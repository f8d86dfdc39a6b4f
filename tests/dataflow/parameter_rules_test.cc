// Frozen parameters in a plan: what only they would need is not computed, and all other gradients are right.
#include "dataflow/parameter_rules.h"

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "engine/backends/devices.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/plan_run.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kClasses = 3;
constexpr float kUntouched = 12.0F;  // what run_plan's gradients begin with

dataflow::Graph normalized_graph(const std::set<std::string>& frozen_layers) {
  const dataflow::Graph graph =
      dataflow::Graph::build(dataflow::image_input({2, 6, 6}, kClasses), normalized_network());
  return dataflow::with_rules(graph, [&](const std::string& name) {
    return dataflow::ParameterRule{.is_frozen = frozen_layers.contains(name.substr(0, name.rfind('.')))};
  });
}

// Counts the tasks of all streams by label.
class Labels final : public engine::StreamObserver {
 public:
  void before_task(const engine::Stream& /*stream*/, const engine::TaskInfo& task) override {
    const std::lock_guard lock(mutex_);
    ++counts_[task.label];
  }
  void after_task(const engine::Stream& /*stream*/, const engine::TaskInfo& /*task*/) override {}
  int count(const std::string& label) {
    const std::lock_guard lock(mutex_);
    return counts_[label];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

struct Step {
  std::map<std::string, std::vector<float>> gradients;
  std::set<std::string> backward;  // labels of the nodes that ran backward
  std::size_t arena_bytes = 0;
};

const std::set<std::string> kNodes = {"conv", "norm1+relu", "hidden", "norm2", "logits", "loss+accuracy"};

// One training step with these frozen layers.
Step step_of(const std::set<std::string>& frozen_layers) {
  Labels labels;
  const auto device = engine::open_device(engine::parse_device("cpu"), {.observer = &labels});
  const dataflow::Graph graph = normalized_graph(frozen_layers);
  const dataflow::Plan plan(graph, *device, {.batch = kBatch});
  PlanInput input = random_plan_input(graph, kBatch, kClasses);
  for (auto& [name, values] : input.parameters) {
    if (name.ends_with("running_var")) values.assign(values.size(), 1.5);
  }
  Step step{run_plan(*device, plan, input, 1, false).gradients, {}, plan.arena_bytes()};
  for (const std::string& node : kNodes) {
    CHECK(labels.count(node) == 1);  // forward
    if (labels.count(node + " backward") > 0) step.backward.insert(node);
  }
  return step;
}

bool is_untouched(const std::vector<float>& gradient) {
  return std::ranges::all_of(gradient, [](float value) { return value == kUntouched; });
}

}  // namespace

TEST_CASE("layers below the first one that trains run no backward pass and get no gradient") {
  const Step all = step_of({});
  CHECK(all.backward == kNodes);
  const std::set<std::string> frozen = {"conv", "norm1", "hidden", "norm2"};
  const Step head = step_of(frozen);
  CHECK(head.backward == std::set<std::string>{"logits", "loss+accuracy"});
  CHECK(head.arena_bytes < all.arena_bytes);
  for (const auto& [name, gradient] : head.gradients) {
    CAPTURE(name);
    CHECK(is_untouched(gradient) == frozen.contains(name.substr(0, name.rfind('.'))));
    CHECK_FALSE(is_untouched(all.gradients.at(name)));
  }
}

TEST_CASE("frozen layers above one that trains pass the gradient on, with their statistics unmeasured") {
  const Step middle = step_of({"hidden", "norm2"});
  CHECK(middle.backward == kNodes);
  CHECK_FALSE(is_untouched(middle.gradients.at("conv.weight")));
  CHECK_FALSE(is_untouched(middle.gradients.at("norm1.running_mean")));
  CHECK(is_untouched(middle.gradients.at("norm2.running_mean")));
  CHECK(is_untouched(middle.gradients.at("norm2.running_var")));
}

TEST_CASE("a multiplier multiplies the layer's own, and ranges of the update follow it") {
  const dataflow::Graph graph = dataflow::with_rules(
      dataflow::Graph::build(dataflow::image_input({2, 6, 6}, kClasses), normalized_network()),
      [](const std::string& name) {
        return dataflow::ParameterRule{.learning_rate_multiplier = name == "logits.weight" ? 10.0F : 1.0F};
      });
  const auto device = engine::open_device(engine::parse_device("cpu"), {});
  const dataflow::Plan plan(graph, *device, {.batch = kBatch});
  std::vector<float> multipliers;
  for (const engine::UpdateRange& range : plan.parameters().update_ranges()) {
    if (!range.is_statistic()) multipliers.push_back(range.learning_rate_multiplier);
  }
  CHECK(multipliers == std::vector<float>{1.0F, 10.0F, 1.0F});
}

}  // namespace arbalest::tests
