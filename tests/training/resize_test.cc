// Another number of learners from one round to the next.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include <malloc.h>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"

namespace {

using arbalest::tests::ReferenceSma;
using arbalest::tests::RigOptions;
using arbalest::tests::TrainingRig;

RigOptions resizable(const std::vector<int>& learners) {
  RigOptions options;
  options.learners = learners;
  options.most_learners = 8;
  options.averaging.central_momentum = 0.7F;
  return options;
}

// Trains `rounds` rounds with each of the numbers in turn, and so does the reference.
void compare_with_reference(const RigOptions& options, const std::vector<std::vector<int>>& sizes, int rounds) {
  TrainingRig rig(options);
  arbalest::tests::SoftmaxRegression regression(rig);
  ReferenceSma reference{
      .period = options.averaging.period, .central_momentum = options.averaging.central_momentum, .rule = options.rule};
  reference.start(arbalest::tests::flatten(rig.scheduler().snapshot()));
  std::int64_t tasks = 0;
  for (const std::vector<int>& size : sizes) {
    rig.resize(size);
    reference.learners = rig.scheduler().learners();
    reference.alpha = options.averaging.alpha_for(reference.learners);
    reference.restart();
    for (int round = 0; round < rounds; ++round) {
      reference.round(options.learning_rate.at(0.0, reference.learners), regression.gradient());
    }
    tasks += rig.run(rounds).tasks;
    CAPTURE(reference.learners);
    CHECK(tasks == static_cast<std::int64_t>(reference.next_task));  // no mini-batch twice, none left out
    CHECK(rig.scheduler().batches() == reference.next_task);
    CHECK(arbalest::tests::relative_distance(arbalest::tests::flatten(rig.scheduler().snapshot()), reference.central) <
          2e-4);
  }
}

std::size_t entries_of(const char* directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("growing and shrinking goes on from the central model with the next mini-batch", "[resize]") {
  for (const int period : {1, 3}) {
    CAPTURE(period);
    RigOptions options = resizable({1});
    options.averaging.period = period;
    compare_with_reference(options, {{2}, {4}, {1}, {8}, {3}, {1}, {1}, {2}}, 8);
  }
}

TEST_CASE("the learners of several devices grow and shrink together and apart", "[resize]") {
  const auto devices = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
  if (devices.empty()) arbalest::tests::skip_test("needs two cores");
  RigOptions options = resizable({1, 1});
  options.devices = devices;
  compare_with_reference(options, {{2, 2}, {1, 3}, {4, 4}, {1, 1}, {2, 1}}, 8);
}

TEST_CASE("the learning rate follows the number of learners", "[resize]") {
  RigOptions options = resizable({1});
  options.learning_rate.with_learners = arbalest::scheduler::LearnerScaling::kSqrt;
  compare_with_reference(options, {{4}, {2}}, 8);
}

TEST_CASE("the optimizer's state starts anew", "[resize]") {
  RigOptions options = resizable({2});
  options.rule = arbalest::engine::AdamW{};
  options.learning_rate.base = 0.01;
  compare_with_reference(options, {{4}, {2}, {1}}, 8);
}

TEST_CASE("learners that are prepared beside the training change none of its bits", "[resize]") {
  TrainingRig alone(resizable({2}));
  alone.run(200);
  alone.resize({4});
  alone.run(10);

  TrainingRig rig(resizable({2}));
  std::thread preparation([&] { rig.pools().front()->prepare(4); });
  rig.run(200);
  preparation.join();
  rig.scheduler().resize(std::vector<int>{4});
  rig.run(10);

  const auto expected = arbalest::tests::flatten(alone.scheduler().snapshot());
  CHECK(arbalest::tests::flatten(rig.scheduler().snapshot()) == expected);
}

TEST_CASE("a lone learner that diverges in a resizable run leaves its last finite model", "[resize]") {
  RigOptions options = resizable({2});
  options.learning_rate.base = 0.1;
  TrainingRig rig(options);
  rig.run(5);
  const auto before = arbalest::tests::flatten(rig.scheduler().snapshot());
  rig.resize({1});
  rig.run(5);
  const auto after = arbalest::tests::flatten(rig.scheduler().snapshot());
  CHECK(arbalest::tests::relative_distance(after, before) > 0.0);

  options.learning_rate.base = 1e18;
  TrainingRig diverging(options);
  diverging.resize({1});
  CHECK_THROWS(diverging.run(60));
  for (const double value : arbalest::tests::flatten(diverging.scheduler().snapshot())) REQUIRE(std::isfinite(value));
}

TEST_CASE("a thousand resizes leave memory, threads and descriptors as they were", "[resize]") {
  RigOptions options = resizable({1});
  options.rule = arbalest::engine::Sgd{};
  options.learning_rate.base = 0.01;
  TrainingRig rig(options);
  const std::vector<std::vector<int>> sizes = {{2}, {8}, {1}, {4}};
  const auto resize_through = [&](int times) {
    for (int i = 0; i < times; ++i) {
      rig.resize(sizes[static_cast<std::size_t>(i) % sizes.size()]);
      rig.run(1);
    }
  };
  const double loss = rig.scheduler().evaluate(rig.test_ring()).loss;
  resize_through(40);
  const std::size_t threads = entries_of("/proc/self/task");
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const auto bytes = static_cast<double>(mallinfo2().uordblks);
  resize_through(1000);
  CHECK(entries_of("/proc/self/task") == threads);
  CHECK(entries_of("/proc/self/fd") == descriptors);
  CHECK(static_cast<double>(mallinfo2().uordblks) < 1.02 * bytes);
  CHECK(rig.scheduler().evaluate(rig.test_ring()).loss < loss);

  rig.pools().front()->release_idle();
  CHECK(entries_of("/proc/self/task") < threads);
  rig.run(4);
}
