// Hogwild on models with dense gradients: learners share one vector of weights, and write it without locks.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/latch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/staleness.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using tests::count_of;
using tests::flat;
using tests::RigOptions;
using tests::TrainingRig;

constexpr int kAhead = scheduler::kRunAhead;

RigOptions sharing(int learners) {
  RigOptions options;
  options.learners = {learners};
  options.synchronization = sma::defaults_of(sma::Scheme::kHogwild);
  return options;
}

RigOptions normalized(int learners) {
  RigOptions options = sharing(learners);
  options.image = {2, 6, 6};
  options.layers = tests::normalized_network();
  options.learning_rate.base = 0.02;
  options.rule = engine::Sgd{.momentum = 0.5F};
  return options;
}

// Lets the steps of two learners take turns: each begins its copy when the other has ended as many steps as `order`
// says. Learner order[i] takes step i.
class TakenTurns final : public engine::StreamObserver {
 public:
  explicit TakenTurns(std::vector<int> order) : order_(std::move(order)) {}

  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    if (task.label != std::string("copy shared weights")) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return ended_ >= order_.size() || stream.name().ends_with(fmt::format(" learner {}", order_[ended_]));
    });
  }
  void after_task(const engine::Stream&, const engine::TaskInfo& task) override {
    if (task.label != std::string("update")) return;
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> order_;
  std::size_t ended_ = 0;
};

// The weights after these mini-batches on a single learner.
std::vector<float> trained_alone(RigOptions options, const std::vector<std::uint64_t>& batches) {
  options.learners = {1};
  options.observer = nullptr;
  options.synchronization = {};
  options.batch_of = [batches](std::uint64_t number) { return batches[number % batches.size()]; };
  TrainingRig rig(options);
  rig.run(static_cast<int>(batches.size()));
  return tests::model_weights(rig);
}

}  // namespace

TEST_CASE("hogwild: learners that take turns have the bits of plain SGD on their mini-batches", "[hogwild]") {
  // Each learner has one thread, as the learner that trains alone: gradients depend on the number of threads.
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) tests::skip_test("needs two cores");
  for (const bool clips : {false, true}) {
    for (const auto precision : {engine::Precision::kFloat32, engine::Precision::kBFloat16}) {
      CAPTURE(clips, static_cast<int>(precision));
      // Learner 0 has the even mini-batches. It is two ahead, then learner 1 is.
      const std::vector<int> order = {0, 0, 1, 1, 1, 0, 0, 1};
      TakenTurns turns(order);
      RigOptions options = sharing(2);
      options.devices = {fmt::format("cpu:{},{}", cores[0], cores[1])};
      options.image = {2, 6, 6};
      options.layers = tests::normalized_network();
      options.precision = precision;
      options.observer = &turns;
      options.rule = engine::Sgd{.weight_decay = 0.01F};  // without momentum, of which each learner has its own
      if (clips) options.clip_gradient_norm = 0.3F;
      TrainingRig rig(options);
      const scheduler::Progress progress = rig.run(4);
      CHECK(progress.tasks == 8);
      CHECK(progress.staleness == sma::StalenessCounts{{0, 8}});
      options.devices = {fmt::format("cpu:{}", cores[0])};
      CHECK(tests::same_bytes(tests::model_weights(rig), trained_alone(options, {0, 2, 1, 3, 5, 4, 6, 7})));
    }
  }
}

TEST_CASE("hogwild: each learner has its own momentum", "[hogwild]") {
  constexpr float kMomentum = 0.75F;
  TakenTurns turns({0, 1, 0, 1});
  RigOptions options = sharing(2);
  options.observer = &turns;
  options.rule = engine::Sgd{.momentum = kMomentum};
  // Both learners get mini-batches 0 and 1, and the learning rate is so small that gradients do not change. So every
  // learner steps by -gamma (g_0, g_1 + m g_0), and the model is the sum of both.
  options.learning_rate.base = 1e-6;
  options.batch_of = [](std::uint64_t number) { return number / 2 % 2; };
  const auto weights_after = [&](RigOptions of, int iterations) {
    TrainingRig rig(of);
    rig.run(iterations);
    return tests::model_weights(rig);
  };
  const std::vector<float> both = weights_after(options, 2);
  RigOptions one = options;
  one.learners = {1};
  one.observer = nullptr;
  one.batch_of = [](std::uint64_t number) { return number % 2; };
  const std::vector<float> alone = weights_after(one, 2);  // the initial weights are 0
  for (std::size_t i = 0; i < both.size(); ++i) CHECK(both[i] == Approx(2.0F * alone[i]).epsilon(1e-3).margin(1e-10));
  CHECK(std::ranges::any_of(alone, [](float w) { return w != 0.0F; }));
}

TEST_CASE("hogwild: a learner that stands still lets the others run two mini-batches ahead", "[hogwild]") {
  class Held final : public engine::StreamObserver {
   public:
    void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
      if (task.label != std::string("update")) return;
      // Learner 1 is held before its step. Learner 0 begins its own once the other has its copy.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return released_ || (has_copied_ && stream.name() == "cpu learner 0"); });
    }
    void after_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
      const std::lock_guard lock(mutex_);
      if (task.label == std::string("update") && stream.name() == "cpu learner 0") ++ended_;
      if (task.label == std::string("copy shared weights") && stream.name() == "cpu learner 1") has_copied_ = true;
      changed_.notify_all();
    }
    void release() {
      const std::lock_guard lock(mutex_);
      released_ = true;
      changed_.notify_all();
    }
    bool reaches(int steps, std::chrono::milliseconds grace) {
      std::unique_lock lock(mutex_);
      return changed_.wait_for(lock, grace, [&] { return ended_ >= steps; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool released_ = false;
    bool has_copied_ = false;
    int ended_ = 0;
  };
  Held held;
  RigOptions options = sharing(2);
  options.observer = &held;
  TrainingRig rig(options);
  scheduler::Progress progress;
  std::thread training([&] { progress = rig.run(6); });
  const bool are_ahead = held.reaches(kAhead, tests::kPatience);
  const bool are_further = held.reaches(kAhead + 1, tests::kGrace);
  held.release();
  training.join();
  CHECK(are_ahead);
  CHECK_FALSE(are_further);
  CHECK(progress.staleness.contains(kAhead));  // the first step of the learner that was held
  CHECK(progress.staleness.rbegin()->first <= kAhead + 1);
  CHECK(count_of(progress.staleness) == 12);
}

TEST_CASE("hogwild: one learner trains as with any other scheme", "[hogwild]") {
  RigOptions options = sharing(1);
  const auto trained = [](const RigOptions& of) {
    TrainingRig rig(of);
    CHECK(rig.run(20).staleness.empty());
    return tests::model_weights(rig);
  };
  const std::vector<float> shared = trained(options);
  options.synchronization = {};
  CHECK(tests::same_bytes(shared, trained(options)));
}

TEST_CASE("hogwild: learners that write in any order learn, and their model is saved and restored", "[hogwild]") {
  for (const int learners : {2, 4}) {
    for (const double average : {0.0, 0.2}) {
      CAPTURE(learners, average);
      RigOptions options = normalized(learners);
      options.statistic_batches = 4;
      options.moving_average_epochs = average;
      TrainingRig rig(options);
      const double before = rig.scheduler().evaluate(rig.test_ring()).loss();
      const scheduler::Progress progress = rig.run(160 / learners);
      CHECK(progress.tasks == 160);
      CHECK(progress.examples == progress.tasks * 4);
      CHECK(count_of(progress.staleness) == 160);
      CHECK(progress.staleness.begin()->first >= 0);
      CHECK(progress.staleness.rbegin()->first <= (kAhead + 1) * (learners - 1));
      const double after = rig.scheduler().evaluate(rig.test_ring()).loss();
      CHECK(after < 0.5 * before);
      CHECK(rig.scheduler().evaluate(rig.test_ring()).loss() == after);
      const scheduler::TrainingState state = rig.scheduler().save();
      TrainingRig again(options);
      again.pools()[0]->prepare(learners);
      again.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners, options.learners);
      again.ring().restart(state.batches);
      CHECK(again.scheduler().evaluate(again.test_ring()).loss() == after);
      const scheduler::TrainingState same = again.scheduler().save();
      CHECK(flat(same.model) == flat(state.model));
      REQUIRE(same.learners.size() == static_cast<std::size_t>(learners));
      for (std::size_t j = 0; j < same.learners.size(); ++j) {
        CHECK(flat(same.learners[j].optimizer.at(0)) == flat(state.learners[j].optimizer.at(0)));
        CHECK(same.learners[j].steps == static_cast<std::uint64_t>(160 / learners));
        if (j > 0) CHECK(flat(same.learners[j].optimizer.at(0)) != flat(same.learners[0].optimizer.at(0)));
      }
      CHECK(again.run(4).tasks == 4 * learners);
      CHECK(again.scheduler().evaluate(again.test_ring()).loss() < before);
    }
  }
}

TEST_CASE("hogwild: a moving average reads the model while no learner writes", "[hogwild]") {
  const auto goes_beyond = [](const std::string& held, const std::string& label, int expected, const char* dropped) {
    tests::Latch latch;
    RigOptions options = normalized(2);
    options.moving_average_epochs = 0.01;  // after every iteration
    options.observer = &latch;
    latch.hold(held);
    latch.drop_waits({dropped});
    TrainingRig rig(options);
    const tests::ReleaseAtEnd release(latch);
    rig.scheduler().advance(rig.ring(), 2);
    CHECK(latch.reaches(label, expected, tests::kPatience));
    return tests::goes_beyond(latch, label, expected, 1, *dropped != '\0');
  };
  CHECK_FALSE(goes_beyond("moving average", "update", 2, ""));
  CHECK_FALSE(goes_beyond("update", "moving average", 0, ""));
  if (tests::kSanitized) return;  // without a wait there is a data race
  CHECK(goes_beyond("moving average", "update", 2, "wait for the moving average"));
  CHECK(goes_beyond("update", "moving average", 0, "wait for the learners' steps"));
}

TEST_CASE("hogwild takes over from other schemes, and gives way to them", "[hogwild]") {
  RigOptions options = normalized(2);
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  sma::Options pushing = sma::defaults_of(sma::Scheme::kAsyncSgd);
  options.switches = {sma::defaults_of(sma::Scheme::kHogwild),
                      sma::defaults_of(sma::Scheme::kSma),
                      sma::defaults_of(sma::Scheme::kHogwild),
                      sma::defaults_of(sma::Scheme::kLocalSgd),
                      pushing,
                      sma::defaults_of(sma::Scheme::kHogwild)};
  options.rule = engine::AdamW{};
  TrainingRig rig(options);
  rig.run(5);
  for (const sma::Options& scheme : options.switches) {
    CAPTURE(sma::name_of(scheme.scheme));
    const scheduler::TrainingState before = rig.scheduler().save();
    rig.scheduler().switch_to(scheme, scheduler::RateScaling::kKeep, std::vector<int>{2});
    const scheduler::TrainingState after = rig.scheduler().save();
    CHECK(flat(after.model) == flat(before.model));
    if (scheme.scheme == sma::Scheme::kHogwild) {  // each learner goes on with its own state
      for (std::size_t j = 0; j < 2; ++j) {
        CHECK(flat(after.learners[j].optimizer[1]) == flat(before.learners[j].optimizer[1]));
        CHECK(after.learners[j].steps == before.learners[j].steps);
      }
      CHECK(after.learners[0].steps > 0);
    }
    const scheduler::Progress progress = rig.run(3);
    CHECK(progress.staleness.empty() ==
          (scheme.scheme != sma::Scheme::kHogwild && scheme.scheme != sma::Scheme::kAsyncSgd));
    CHECK_FALSE(flat(rig.scheduler().save().model) == flat(before.model));
  }
}

TEST_CASE("hogwild: the number of learners may change", "[hogwild]") { tests::check_resizes(sharing(1), 1); }

TEST_CASE("hogwild: a training that diverges names learner and mini-batch, and keeps a finite model", "[hogwild]") {
  // At the first rate the weight decay alone makes weights grow a hundredfold with each step.
  for (const double rate : {1e4, 1e20}) {
    CAPTURE(rate);
    RigOptions options = sharing(3);
    options.image = {2, 6, 6};
    options.layers = tests::small_network();
    options.learning_rate.base = rate;
    TrainingRig rig(options);
    tests::check_diverges(rig);
  }
}
