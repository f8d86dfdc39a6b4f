// Rounds and epochs, evaluation of the central model, divergence.
#include "scheduler/scheduler.h"

#include <cmath>
#include <limits>

#include "scheduler/replicas/ring_queue.h"
#include "sma/options.h"
#include "tests/support/catch.h"
#include "tests/support/evaluation.h"
#include "tests/support/training_rig.h"

namespace {

using namespace arbalest;
using tests::accuracy_of;
using tests::RigOptions;
using tests::TrainingRig;

bool all_finite(const std::vector<dataflow::NamedTensor>& tensors) {
  for (const auto& tensor : tensors) {
    for (const float value : tensor.values) {
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("a round that does not divide the epoch continues into the next epoch", "[scheduler]") {
  RigOptions options;
  options.learners = {5};
  options.examples = 4 * 12 + 3;  // 12 mini-batches, 3 examples dropped
  TrainingRig rig(options);
  CHECK(rig.order().batches_per_epoch() == 12);
  CHECK(rig.order().dropped_examples() == 3);
  const scheduler::Progress progress = rig.run(3);
  CHECK(progress.tasks == 15);
  CHECK(progress.examples == 60);
  CHECK(rig.scheduler().progress() == Approx(1.25));
}

TEST_CASE("advance runs ahead by a bounded number of rounds and loses no task", "[scheduler]") {
  RigOptions options;
  options.learners = {3};
  TrainingRig rig(options);
  scheduler::Progress progress;
  for (int round = 0; round < 50; ++round) progress.add(rig.scheduler().advance(rig.ring(), 1));
  CHECK(progress.tasks == 3 * (50 - scheduler::kRunAhead));
  progress.add(rig.scheduler().drain());
  CHECK(progress.tasks == 150);
  CHECK(progress.replica_distance > 0.0);
  CHECK(progress.host_seconds > 0.0);
}

TEST_CASE("a ring for one pass has slots for the batches in use, and at most one per batch of the pass",
          "[scheduler]") {
  constexpr int kWithoutNeed = 16;
  CHECK(scheduler::pass_ring_slots(8, 16, 1) == 16);
  CHECK(scheduler::pass_ring_slots(8, 1000, 1) == (scheduler::kRunAhead + 1) * 8);
  CHECK(scheduler::pass_ring_slots(1, 1000, kWithoutNeed) == kWithoutNeed);
  CHECK(scheduler::pass_ring_slots(1, 5, kWithoutNeed) == 5);
  CHECK(scheduler::pass_ring_slots(1, 0, kWithoutNeed) == 1);  // for an empty set
  // Repeats the pass with slots for all batches, for all but one, and for few.
  for (const int batches : {1, 8, 9, 10, 31}) {
    RigOptions options;
    options.learners = {3};
    options.examples = options.batch * batches;
    TrainingRig rig(options);
    rig.run(1);
    for (int pass = 0; pass < 3; ++pass) CHECK(rig.scheduler().evaluate(rig.test_ring()).examples == options.examples);
  }
}

TEST_CASE("evaluation counts every example once and uses the central model", "[scheduler]") {
  for (const int learners : {1, 3}) {
    RigOptions options;
    options.learners = {learners};
    options.examples = 4 * 12 + 3;
    options.learning_rate.base = 0.02;
    TrainingRig rig(options);
    const scheduler::Evaluation before = rig.scheduler().evaluate(rig.test_ring());
    CHECK(before.examples == 51);
    rig.run(80);
    const scheduler::Evaluation after = rig.scheduler().evaluate(rig.test_ring());
    CHECK(after.examples == 51);
    CHECK(after.loss() < before.loss());
    CHECK(accuracy_of(after) > 0.9);
    CHECK(accuracy_of(before, 5) > accuracy_of(before));
    CHECK(accuracy_of(after, 5) >= accuracy_of(after));
    CHECK(accuracy_of(after, 5) <= 1.0);
    const scheduler::Evaluation again = rig.scheduler().evaluate(rig.test_ring());
    CHECK(again.loss() == after.loss());
    CHECK(accuracy_of(again) == accuracy_of(after));

    TrainingRig other(options);
    other.scheduler().load(rig.scheduler().snapshot());
    CHECK(other.scheduler().evaluate(other.test_ring()).loss() == after.loss());
  }
}

TEST_CASE("divergence stops the run, names learner and mini-batch, and keeps a finite model", "[scheduler]") {
  for (const int learners : {1, 2, 4}) {
    CAPTURE(learners);
    RigOptions options;
    options.learners = {learners};
    options.learning_rate.base = 1e18;
    TrainingRig rig(options);
    try {
      rig.run(60);
      FAIL("the run did not diverge");
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kDiverged);
      CHECK_THAT(error.what(), ContainsSubstring("learner ") && ContainsSubstring("mini-batch "));
    }
    CHECK(all_finite(rig.scheduler().snapshot()));
  }
}

TEST_CASE("a ring queue is first in, first out, and bounded", "[scheduler]") {
  scheduler::RingQueue<int> queue(2);
  queue.push(1);
  queue.push(2);
  CHECK_THROWS_AS(queue.push(3), engine::Error);
  CHECK(queue.pop() == 1);
  queue.push(3);
  CHECK(queue.pop() == 2);
  CHECK(queue.pop() == 3);
  CHECK_THROWS_AS(queue.pop(), engine::Error);
}

TEST_CASE("averaging beyond its stability is refused", "[sma]") {
  const auto options = [](float alpha, float mu) {
    sma::Options result;
    result.pull = alpha;
    result.momentum = mu;
    return result;
  };
  CHECK_NOTHROW(sma::check(options(0.1F, 0.9F), 36));
  CHECK_THROWS_AS(sma::check(options(0.1F, 0.9F), 37), engine::Error);  // 3.7 >= 1.9 * 1.9
  CHECK_NOTHROW(sma::check(options(0.1F, 0.0F), 18));
  CHECK_THROWS_AS(sma::check(options(0.1F, 0.0F), 19), engine::Error);  // 1.9 >= 1.0 * 1.9
  CHECK_THROWS_AS(sma::check(options(0.0F, 0.9F), 2), engine::Error);
  CHECK_THROWS_AS(sma::check(options(1.1F, 0.9F), 2), engine::Error);
  CHECK_THROWS_AS(sma::check(options(0.5F, 1.0F), 2), engine::Error);
  CHECK_THROWS_AS(sma::check(options(0.5F, -0.1F), 2), engine::Error);
  CHECK_THROWS_AS(sma::check(options(0.5F, std::numeric_limits<float>::quiet_NaN()), 2), engine::Error);
  CHECK_FALSE(sma::warning(options(0.25F, 0.9F), 4, 0.9F, false, false).empty());
  CHECK(sma::warning(options(0.25F, 0.9F), 16, 0.9F, false, false).empty());
  CHECK(sma::warning(options(0.25F, 0.5F), 4, 0.9F, false, false).empty());
}
