// The moving average of the central model. Its weights are compared with the formula, and the evaluated and saved model
// with the central models of the same training without an average.
#include "scheduler/evaluation/moving_average.h"

#include <cmath>
#include <cstring>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {
namespace {

using Catch::Matchers::WithinAbs;
using Values = std::vector<double>;

Values flat(const std::vector<dataflow::NamedTensor>& tensors) {
  Values values;
  for (const auto& tensor : tensors) values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  return values;
}

struct State {
  double progress;
  Values values;
};

// Each state covers the time since the previous state. The first one covers the time since the start.
Values average_of(const std::vector<State>& states, double epochs) {
  const double now = states.back().progress;
  Values sum(states.front().values.size(), 0.0);
  double before = 0.0;
  double weights = 0.0;
  for (const State& state : states) {
    const double weight = std::exp((state.progress - now) / epochs) - std::exp((before - now) / epochs);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * state.values[i];
    weights += weight;
    before = state.progress;
  }
  for (double& value : sum) value /= weights;
  return sum;
}

// Two trainings of the same job, one of them with a moving average.
class Compared {
 public:
  Compared(RigOptions options, double epochs) : epochs_(epochs), plain_(options), averaged_(with_average(options)) {}

  TrainingRig& averaged() { return averaged_; }

  // Trains both for `rounds` rounds.
  void train(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      plain_.run(1);
      const double progress = plain_.scheduler().progress();
      const double since = progress - (states_.empty() ? 0.0 : states_.back().progress);
      if (since >= epochs_ / 64.0) states_.push_back({progress, flat(plain_.scheduler().snapshot())});
    }
    averaged_.run(rounds);
  }

  void resize(const std::vector<int>& learners) {
    plain_.resize(learners);
    averaged_.resize(learners);
  }

  // Distance of the saved model from the expected one.
  double error() {
    if (states_.back().progress < plain_.scheduler().progress()) {  // a snapshot adds the current state
      states_.push_back({plain_.scheduler().progress(), flat(plain_.scheduler().snapshot())});
    }
    return relative_error(flat(averaged_.scheduler().snapshot()), average_of(states_, epochs_));
  }

  // Distance of the current central model from the expected average.
  double distance() { return relative_error(flat(plain_.scheduler().snapshot()), average_of(states_, epochs_)); }

 private:
  RigOptions with_average(RigOptions options) const {
    options.moving_average_epochs = epochs_;
    return options;
  }

  double epochs_;
  TrainingRig plain_;
  TrainingRig averaged_;
  std::vector<State> states_;
};

void check_evaluation(engine::Precision precision) {
  RigOptions options;
  options.learners = {GENERATE(1, 2)};
  options.precision = precision;
  options.moving_average_epochs = 1.0;
  CAPTURE(options.learners[0]);
  TrainingRig trained(options);
  trained.run(20);
  const scheduler::Evaluation of_average = trained.scheduler().evaluate(trained.test_ring());
  TrainingRig loaded(options);
  loaded.scheduler().load(trained.scheduler().snapshot());
  CHECK(loaded.scheduler().evaluate(loaded.test_ring()).loss() == of_average.loss());
  options.moving_average_epochs = 0.0;
  TrainingRig plain(options);
  plain.run(20);
  CHECK(plain.scheduler().evaluate(plain.test_ring()).loss() != of_average.loss());
}

}  // namespace

TEST_CASE("a moving average weighs states by their age, also at uneven intervals") {
  constexpr double kEpochs = 0.5;
  scheduler::MovingAverage average({.epochs = kEpochs});
  std::vector<State> states;
  double value = std::nan("");
  for (const double progress : {0.01, 0.02, 0.3, 0.31, 0.9, 1.7, 4.0}) {
    states.push_back({progress, {std::sin(3.0 * progress)}});
    const double weight = static_cast<double>(average.take(progress));
    value = states.size() == 1 ? states.back().values[0] : value + weight * (states.back().values[0] - value);
    if (states.size() == 1) CHECK(weight == 1.0);
    CHECK_THAT(value, WithinAbs(average_of(states, kEpochs)[0], 1e-6));
  }
  CHECK(average.take(4.0) == 0.0F);
  CHECK_FALSE(average.is_due(4.0 + kEpochs / 65.0));
  CHECK(average.is_due(4.0 + kEpochs / 63.0));
}

TEST_CASE("without a span the average is always the current state") {
  scheduler::MovingAverage none({});
  for (const double progress : {0.0, 0.5, 0.5, 1.0}) {
    CHECK(none.take(progress) == 1.0F);
    CHECK_FALSE(none.is_due(progress + 100.0));
  }
}

TEST_CASE("the saved model is the moving average of the central model", "[training]") {
  RigOptions options;
  options.learners = {GENERATE(1, 3)};
  options.synchronization.period = GENERATE(1, 2);
  const double epochs = GENERATE(0.4, 12.0);  // averages every round, or one of several
  CAPTURE(options.learners[0], options.synchronization.period, epochs);
  Compared compared(options, epochs);
  compared.train(10);
  CHECK(compared.error() < 1e-6);
  CHECK(compared.distance() > 1e-2);
  compared.train(15);
  CHECK(compared.error() < 1e-6);
}

TEST_CASE("the moving average includes running statistics", "[training]") {
  RigOptions options = options_on({"cpu"}, {GENERATE(1, 3)});
  options.layers = normalized_network();
  Compared compared(options, 1.0);
  compared.train(12);
  CHECK(compared.error() < 1e-6);
}

TEST_CASE("devices agree on the moving average", "[training]") {
  RigOptions options;
  options.devices = two_devices(engine::host::allowed_cores());
  if (options.devices.empty()) skip_test("needs two cores");
  options.learners = {1, 2};
  Compared compared(options, 2.0);
  compared.train(20);
  CHECK(compared.error() < 1e-6);
  const auto& pools = compared.averaged().pools();
  const auto bytes = static_cast<std::size_t>(pools[0]->training_plan().parameters().elements()) * sizeof(float);
  CHECK(std::memcmp(pools[0]->evaluation_weights(), pools[1]->evaluation_weights(), bytes) == 0);
}

TEST_CASE("the moving average continues when the number of learners changes", "[training]") {
  RigOptions options;
  options.most_learners = 4;
  Compared compared(options, 1.5);
  for (const int learners : {1, 3, 1, 4, 2}) {
    CAPTURE(learners);
    compared.resize({learners});
    compared.train(7);
    CHECK(compared.error() < 1e-6);
  }
}

TEST_CASE("evaluation uses the moving average that is saved", "[training]") {
  check_evaluation(engine::Precision::kFloat32);
}

TEST_CASE("evaluation in BF16 uses the moving average that is saved", "[training][precision]") {
  const std::string problem = engine::precision_problem(engine::parse_device("cpu"), engine::Precision::kBFloat16);
  if (!problem.empty()) skip_test(problem);
  check_evaluation(engine::Precision::kBFloat16);
}

}  // namespace arbalest::tests
