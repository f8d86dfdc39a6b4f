// The number of learners changes from one round to the next.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include <malloc.h>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/resident_bytes.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"
#include "tests/support/weights.h"

namespace {

using arbalest::tests::ReferenceSma;
using arbalest::tests::resident_bytes;
using arbalest::tests::RigOptions;
using arbalest::tests::TrainingRig;

RigOptions resizable(const std::vector<int>& learners) {
  RigOptions options;
  options.learners = learners;
  options.most_learners = 8;
  options.synchronization.momentum = 0.7F;
  return options;
}

// A rig and its reference.
class Compared {
 public:
  explicit Compared(const RigOptions& options)
      : options_(options),
        rig_(options),
        regression_(rig_),
        reference_{.period = options.synchronization.period,
                   .central_momentum = options.synchronization.momentum.value(),
                   .rule = options.rule} {
    reference_.start(arbalest::tests::flatten(rig_.scheduler().snapshot()));
  }

  TrainingRig& rig() { return rig_; }

  // Both train `rounds` rounds with these learners.
  void train(const std::vector<int>& learners, int rounds) {
    rig_.resize(learners);
    reference_.learners = rig_.scheduler().learners();
    reference_.alpha = 1.0 / reference_.learners;
    reference_.restart();
    for (int round = 0; round < rounds; ++round) {
      reference_.round(options_.learning_rate.at(0.0, reference_.learners), regression_.gradient());
    }
    tasks_ += rig_.run(rounds).tasks;
  }

  void check() {
    CAPTURE(reference_.learners);
    CHECK(tasks_ == static_cast<std::int64_t>(reference_.next_task));  // each mini-batch exactly once
    CHECK(rig_.scheduler().batches() == reference_.next_task);
    const auto found = arbalest::tests::flatten(rig_.scheduler().snapshot());
    CHECK(arbalest::tests::relative_distance(found, reference_.central) < 2e-4);
  }

 private:
  RigOptions options_;
  TrainingRig rig_;
  arbalest::tests::SoftmaxRegression regression_;
  ReferenceSma reference_;
  std::int64_t tasks_ = 0;
};

// Rig and reference train `rounds` rounds with each number of learners in turn.
void compare_with_reference(const RigOptions& options, const std::vector<std::vector<int>>& sizes, int rounds) {
  Compared compared(options);
  for (const std::vector<int>& size : sizes) {
    compared.train(size, rounds);
    compared.check();
  }
}

std::size_t entries_of(const char* directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("a resize continues from the central model with the next mini-batch", "[resize]") {
  for (const int period : {1, 3}) {
    CAPTURE(period);
    RigOptions options = resizable({1});
    options.synchronization.period = period;
    compare_with_reference(options, {{2}, {4}, {1}, {8}, {3}, {1}, {1}, {2}}, 8);
  }
}

TEST_CASE("learners that were idle and are used again train to the same bytes as new ones", "[resize]") {
  const auto trained = [](bool frees) {
    RigOptions options = resizable({1});
    options.rule = arbalest::engine::AdamW{};
    TrainingRig rig(options);
    const auto& pool = *rig.pools().front();
    const arbalest::learners::Learner* second = nullptr;
    for (const int learners : {2, 1, 2}) {
      rig.resize({learners});
      if (learners == 2 && second != nullptr && !frees) CHECK(pool.learners()[1] == second);
      if (learners == 2) second = pool.learners()[1];
      if (frees) rig.pools().front()->release_idle();
      rig.run(4);
    }
    return arbalest::tests::flatten(rig.scheduler().snapshot());
  };
  CHECK(trained(false) == trained(true));
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
  options.learning_rate.with_learners = arbalest::scheduler::RateScaling::kSqrt;
  compare_with_reference(options, {{4}, {2}}, 8);
}

TEST_CASE("a resize resets the optimizer's state", "[resize]") {
  RigOptions options = resizable({2});
  options.rule = arbalest::engine::AdamW{};
  options.learning_rate.base = 0.01;
  compare_with_reference(options, {{4}, {2}, {1}}, 8);
}

TEST_CASE("preparing learners during training changes no bit", "[resize]") {
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

namespace {

// Bytes that freed stacks and arenas may keep for a while.
constexpr double kSlack = 16 << 20;

// A joined thread is still listed for a moment, so this returns the smallest of several readings.
std::size_t threads_there() {
  std::size_t least = entries_of("/proc/self/task");
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    least = std::min(least, entries_of("/proc/self/task"));
  }
  return least;
}

// Resources that the process holds.
struct Holdings {
  std::size_t threads = threads_there();
  std::size_t descriptors = entries_of("/proc/self/fd");
  // Allocated bytes, in the heap or mapped separately.
  double allocated = static_cast<double>(mallinfo2().uordblks) + static_cast<double>(mallinfo2().hblkhd);
  double resident = resident_bytes();
};

}  // namespace

// Changing between these numbers creates and destroys learners of every thread count. A learner takes more than
// 100 KiB, so a single leaked learner of a thousand would show.
TEST_CASE("a thousand resizes leave memory, threads and descriptors as they were", "[resize]") {
  RigOptions options = resizable({1});
  options.image = {1, 32, 32};
  options.classes = 10;
  options.rule = arbalest::engine::Sgd{.momentum = 0.5F};
  options.learning_rate.base = 0.01;
  Compared compared(options);
  const std::vector<std::vector<int>> sizes = {{2}, {8}, {1}, {4}};
  const auto resize_through = [&](int times) {
    for (int i = 0; i < times; ++i) compared.train(sizes[static_cast<std::size_t>(i) % sizes.size()], 1);
  };
  resize_through(3);
  compared.rig().pools().front()->release_idle();
  const std::size_t threads_of_one = threads_there();
  resize_through(2);
  CHECK(threads_there() > threads_of_one);  // threads do come and go
  resize_through(40);
  const Holdings before;
  resize_through(1000);
  const Holdings after;
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  if (!arbalest::tests::kSanitized) {
    CHECK(after.allocated < 1.02 * before.allocated);
    CHECK(after.resident < before.resident + kSlack);
  }
  compared.check();
}

TEST_CASE("rounds do not see learners that another thread prepares meanwhile", "[training]") {
  const RigOptions options = resizable({2});
  const auto weights = [&](bool prepares) {
    TrainingRig rig(options);
    std::thread other;
    if (prepares) {
      other = std::thread([&pool = *rig.pools().front()] {
        for (int count = 3; count <= 8; ++count) pool.prepare(count);
      });
    }
    rig.run(40);
    if (prepares) other.join();
    return arbalest::tests::model_weights(rig);
  };
  CHECK(weights(true) == weights(false));
}
