// Tests that every wait of every synchronization mode between replicas and central model is needed. The tests hold
// tasks and drop waits instead of reading a clock (tests/support/latch.h).
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/latch.h"
#include "tests/support/sanitized.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/small_training.h"

namespace {

using namespace arbalest;
using tests::device_lists;
using tests::kGrace;
using tests::kPatience;
using tests::Latch;
using tests::RigOptions;
using tests::TrainingRig;

using Labels = std::set<std::string>;

constexpr const char* kWaitForUpdates = "wait for updated replicas";
constexpr const char* kWaitForRead = "wait for averaging's read";
constexpr const char* kWaitForWeights = "wait for new weights";
constexpr const char* kWaitForState = "wait for new optimizer state";
constexpr const char* kWaitForPart = "wait for the gradients' part";
constexpr const char* kWaitForReplicas = "wait for the replicas to be read";
constexpr const char* kWaitForCopy = "wait for the central model's copy";

constexpr int kLearners = 2;  // on each device

RigOptions options_of(const tests::SchemeCase& scheme, const std::vector<std::string>& devices) {
  RigOptions options = tests::scheme_options(std::vector<int>(devices.size(), kLearners), devices);
  options.synchronization = scheme.options;
  return options;
}

int devices_of(const RigOptions& options) { return static_cast<int>(options.devices.size()); }
int learners_of(const RigOptions& options) { return kLearners * devices_of(options); }
// Returns the label of the task that reads the replicas. On one device the same task writes the central model.
const char* read_label(const RigOptions& options) { return devices_of(options) == 1 ? "averaging" : "averaging read"; }
const char* central_label(const RigOptions& options) {
  return devices_of(options) == 1 ? "averaging" : "central update";
}

// While tasks labeled `held` are held, exactly `before` tasks labeled `later` may end within `iterations` iterations.
// `after` more end once the held tasks run, or once the waits are dropped.
struct Order {
  std::string held;
  std::string later;
  int iterations = 1;
  int before = 0;
  int after = 1;
};

bool overtakes(RigOptions options, const Order& order, const Labels& dropped, bool is_expected) {
  Latch latch;
  options.observer = &latch;
  latch.hold(order.held);
  latch.drop_waits(dropped);
  TrainingRig rig(options);
  const tests::ReleaseAtEnd release(latch);
  rig.scheduler().advance(rig.ring(), order.iterations);
  CHECK((order.before == 0 || latch.reaches(order.later, order.before, kPatience)));
  const bool result = tests::goes_beyond(latch, order.later, order.before, order.after, is_expected);
  latch.release();
  if (dropped.empty()) {
    rig.scheduler().drain();
    CHECK(latch.reaches(order.later, order.before + order.after, kPatience));
  }
  return result;
}

// Checks that each of `waits` alone is enough to keep the order, and that the order is lost without all of them.
void check_waits_are_needed(const RigOptions& options, const Order& order, const Labels& waits) {
  CAPTURE(options.devices.size(), order.held, order.later);
  CHECK_FALSE(overtakes(options, order, {}, false));
  if (tests::kSanitized) return;  // dropped waits are data races on purpose
  if (waits.size() > 1) {
    for (const std::string& kept : waits) {
      Labels others = waits;
      others.erase(kept);
      CAPTURE(kept);
      CHECK_FALSE(overtakes(options, order, others, false));
    }
  }
  CHECK(overtakes(options, order, waits, true));
}

tests::SchemeCase local_sgd(int period, sma::LocalState state = sma::LocalState::kKeep) {
  return tests::local_sgd_case(state).with_period(period);
}

// s_sgd reduces the gradients of this network in several parts.
RigOptions reduced_in_parts(const std::vector<std::string>& devices) {
  RigOptions options = options_of(tests::s_sgd_case(16), devices);
  options.layers = {{"hidden", {"image"}, tests::dense_layer(12)},
                    {"relu", {"hidden"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
                    {"hidden2", {"relu"}, tests::dense_layer(8)},
                    {"logits", {"hidden2"}, tests::dense_layer(3)},
                    {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
  return options;
}

int parts_of(TrainingRig& rig) {
  return static_cast<int>(rig.pools().front()->teams().front()->gradient_parts().size());
}

}  // namespace

TEST_CASE("computing an assigned center waits for the updates, and only because of their events", "[overlap]") {
  for (const auto& devices : device_lists()) {
    const RigOptions options = options_of(local_sgd(1), devices);
    check_waits_are_needed(options, {.held = "update", .later = read_label(options), .after = devices_of(options)},
                           {kWaitForUpdates});
  }
}

TEST_CASE("assigning weights and the next gradient wait for the center", "[overlap]") {
  for (const auto& devices : device_lists()) {
    const RigOptions options = options_of(local_sgd(1), devices);
    const int learners = learners_of(options);
    check_waits_are_needed(options, {.held = central_label(options), .later = "assign weights", .after = learners},
                           {kWaitForWeights});
    check_waits_are_needed(
        options,
        {.held = central_label(options), .later = "gradient", .iterations = 2, .before = learners, .after = learners},
        {kWaitForWeights});
  }
}

TEST_CASE("assigning the optimizer's state waits for its mean", "[overlap]") {
  for (const auto& devices : device_lists()) {
    const RigOptions options = options_of(local_sgd(1, sma::LocalState::kAverage), devices);
    check_waits_are_needed(
        options, {.held = "mean optimizer state", .later = "assign optimizer state", .after = learners_of(options)},
        {kWaitForWeights, kWaitForState});
  }
}

TEST_CASE("averaging gradients waits for the gradients, and only because of their events", "[overlap]") {
  for (const auto& devices : device_lists()) {
    const RigOptions options = options_of(tests::s_sgd_case(), devices);
    check_waits_are_needed(options, {.held = "gradient", .later = "mean gradient", .after = devices_of(options)},
                           {kWaitForPart});
  }
}

TEST_CASE("an update of s_sgd waits for the gradients' mean, and only because of its event", "[overlap]") {
  for (const auto& devices : device_lists()) {
    const RigOptions options = options_of(tests::s_sgd_case(), devices);
    const int learners = learners_of(options);
    check_waits_are_needed(options, {.held = "mean gradient", .later = "update", .after = learners}, {kWaitForRead});
    if (devices.size() == 1) continue;
    check_waits_are_needed(options, {.held = "all-reduce", .later = "update", .after = learners}, {kWaitForRead});
  }
}

TEST_CASE("with the first part's mean held, learners of s_sgd finish the whole gradient and no update", "[overlap]") {
  for (const auto& devices : device_lists()) {
    Latch latch;
    RigOptions options = reduced_in_parts(devices);
    options.observer = &latch;
    latch.hold("mean gradient");
    TrainingRig rig(options);
    const tests::ReleaseAtEnd release(latch);
    const int parts = parts_of(rig);
    REQUIRE(parts >= 3);
    rig.scheduler().advance(rig.ring(), 1);
    CHECK(latch.reaches("gradient", parts * learners_of(options), kPatience));
    CHECK_FALSE(latch.reaches("update", 1, kGrace));
    CHECK(latch.finished("mean gradient") == 0);
    latch.release();
    rig.scheduler().drain();
    CHECK(latch.finished("mean gradient") == parts * devices_of(options));
    CHECK(latch.finished("update") == learners_of(options));
  }
}

TEST_CASE("a part of the gradient is averaged while the backward pass of the next is held", "[overlap]") {
  for (const auto& devices : device_lists()) {
    Latch latch;
    RigOptions options = reduced_in_parts(devices);
    options.observer = &latch;
    constexpr int kPassing = 2;  // parts of each learner
    latch.hold("gradient", kPassing);
    TrainingRig rig(options);
    const tests::ReleaseAtEnd release(latch);
    rig.scheduler().advance(rig.ring(), 1);
    const int averaged = kPassing * devices_of(options);
    CHECK(latch.reaches("mean gradient", averaged, kPatience));
    CHECK_FALSE(latch.reaches("mean gradient", averaged + 1, kGrace));
    CHECK(latch.finished("gradient") == kPassing * learners_of(options));
    latch.release();
    rig.scheduler().drain();
  }
}

TEST_CASE("with s_sgd, averaging the model waits for the updates, and the next updates wait for it", "[overlap]") {
  for (const auto& devices : device_lists()) {
    RigOptions options = options_of(tests::s_sgd_case(), devices);
    options.moving_average_epochs = 0.5;
    check_waits_are_needed(options, {.held = "update", .later = read_label(options), .after = devices_of(options)},
                           {kWaitForReplicas});
    const int learners = learners_of(options);
    // The next mean of the gradients runs on the same stream as the held task. Therefore two waits keep the order.
    check_waits_are_needed(
        options,
        {.held = read_label(options), .later = "update", .iterations = 2, .before = learners, .after = learners},
        {kWaitForReplicas, kWaitForRead});
  }
}

TEST_CASE("a restart waits for updates that read the center, and learners for the restart", "[overlap]") {
  for (const auto& devices : device_lists()) {
    RigOptions options = options_of(tests::sma_case(), devices);
    options.learning_rate.curve = scheduler::MultistepDrops{{{0.05, 0.5}}};  // after the first round
    check_waits_are_needed(
        options, {.held = "update", .later = "restart central momentum", .iterations = 2, .after = devices_of(options)},
        {kWaitForUpdates});
    check_waits_are_needed(
        options,
        {.held = "restart central momentum", .later = "assign weights", .iterations = 2, .after = learners_of(options)},
        {kWaitForWeights});
  }
}

namespace {

// Returns whether tasks labeled `label` read the model's copy while the copying is held.
bool reads_before_copy(RigOptions options, const std::string& label, int tasks, const Labels& dropped) {
  Latch latch;
  options.observer = &latch;
  latch.drop_waits(dropped);
  TrainingRig rig(options);
  rig.run(1);
  latch.hold("moving average");
  std::thread evaluation([&] { rig.scheduler().evaluate(rig.test_ring()); });
  const bool result = tests::goes_beyond(latch, label, 0, tasks, !dropped.empty());
  latch.release();
  evaluation.join();
  CHECK(latch.finished(label) == tasks);
  return result;
}

}  // namespace

TEST_CASE("evaluation waits for the model's copy, and only because of its event", "[overlap]") {
  constexpr int kStatisticBatches = 4;
  for (const auto& devices : device_lists()) {
    for (const tests::SchemeCase& scheme : {tests::sma_case(), local_sgd(1), local_sgd(3), tests::s_sgd_case()}) {
      CAPTURE(scheme.name, scheme.options.period, devices.size());
      RigOptions options = options_of(scheme, devices);
      const int batches = static_cast<int>(options.examples / options.batch);
      CHECK_FALSE(reads_before_copy(options, "evaluate", batches, {}));
      if (!tests::kSanitized) CHECK(reads_before_copy(options, "evaluate", batches, {kWaitForCopy}));
      options.image = {2, 6, 6};
      options.layers = tests::normalized_network();
      options.statistic_batches = kStatisticBatches;
      CHECK_FALSE(reads_before_copy(options, "statistics", kStatisticBatches, {}));
      if (!tests::kSanitized) CHECK(reads_before_copy(options, "statistics", kStatisticBatches, {kWaitForCopy}));
    }
  }
}
