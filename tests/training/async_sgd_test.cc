// Asynchronous SGD over a server: order, bounds, the server's steps, and what a run needs besides them.
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/latch.h"
#include "tests/support/numbers.h"
#include "tests/support/schemes.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/staleness.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using tests::async_sgd;
using tests::count_of;
using tests::flat;
using tests::RigOptions;
using tests::TrainingRig;

RigOptions pushing(const std::vector<int>& learners, const sma::Options& scheme) {
  RigOptions options;
  options.learners = learners;
  options.synchronization = scheme;
  return options;
}

// Holds the tasks with this label of the stream with this name, and counts the finished tasks of all streams.
class OneHeld final : public engine::StreamObserver {
 public:
  explicit OneHeld(std::string held, std::string label = "gradient")
      : held_(std::move(held)), label_(std::move(label)) {}

  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return task.label != label_ || stream.name() != held_; });
  }
  void after_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    const std::lock_guard lock(mutex_);
    ++finished_[stream.name() + ": " + task.label];
    changed_.notify_all();
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = "nobody";
    changed_.notify_all();
  }
  int gradients(const std::string& learner) {
    const std::lock_guard lock(mutex_);
    return finished_[learner + ": gradient"];
  }
  bool reaches(const std::string& learner, int gradients, std::chrono::milliseconds grace) {
    return reaches(learner, "gradient", gradients, grace);
  }
  // Whether the server of this device applies so many pushes.
  bool are_applied(const std::string& device, int pushes, std::chrono::milliseconds grace = tests::kPatience) {
    return reaches(device + " averaging", "server's update", pushes, grace);
  }

 private:
  bool reaches(const std::string& stream, const std::string& label, int count, std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, grace, [&] { return finished_[stream + ": " + label] >= count; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string held_;
  const std::string label_;
  std::map<std::string, int> finished_;
};

// Trains while another thread looks on. The scheduler's thread blocks as long as the latch holds a learner.
class Training {
 public:
  Training(const RigOptions& options, OneHeld& latch, int iterations)
      : latch_(latch), rig_(options), thread_([this, iterations] { progress_ = rig_.run(iterations); }) {}
  ~Training() {
    if (!thread_.joinable()) return;
    latch_.release();
    thread_.join();
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const scheduler::Progress& finish() {
    latch_.release();
    thread_.join();
    return progress_;
  }
  TrainingRig& rig() { return rig_; }

 private:
  OneHeld& latch_;
  TrainingRig rig_;
  scheduler::Progress progress_;
  std::thread thread_;
};

// The weights after these mini-batches on a single learner, from `first` on.
std::vector<float> trained_alone(RigOptions options, const std::vector<std::uint64_t>& batches,
                                 const std::vector<dataflow::NamedTensor>& first = {}) {
  options.learners = {1};
  options.observer = nullptr;
  options.synchronization = {};
  options.batch_of = [batches](std::uint64_t number) { return batches[number % batches.size()]; };
  TrainingRig rig(options);
  if (!first.empty()) rig.scheduler().load(first);
  rig.run(static_cast<int>(batches.size()));
  return tests::model_weights(rig);
}

}  // namespace

TEST_CASE("with one learner held the others complete exactly s + 1 clocks", "[async]") {
  for (const int staleness : {0, 1, 3}) {
    for (const int push_every : {1, 4}) {
      if (staleness == 0 && push_every == 1) continue;  // has rounds
      CAPTURE(staleness, push_every);
      OneHeld latch("cpu learner 1");
      RigOptions options = pushing({3}, async_sgd(staleness, push_every));
      options.observer = &latch;
      Training training(options, latch, 6);
      const int expected = (staleness + 1) * push_every;
      for (const char* other : {"cpu learner 0", "cpu learner 2"})
        CHECK(latch.reaches(other, expected, tests::kPatience));
      for (const char* other : {"cpu learner 0", "cpu learner 2"})
        CHECK_FALSE(latch.reaches(other, expected + 1, tests::kGrace));
      CHECK(latch.gradients("cpu learner 1") == 0);
      const scheduler::Progress& progress = training.finish();
      CHECK(progress.tasks == 6 * 3 * push_every);
      CHECK(count_of(progress.staleness) == 6 * 3);
      // The learner that was held missed all pushes of the others.
      CHECK(progress.staleness.at(2 * (staleness + 1)) >= 1);
    }
  }
}

TEST_CASE("without a bound, the others train as long as the ring has mini-batches", "[async]") {
  OneHeld latch("cpu learner 0");
  RigOptions options = pushing({2}, async_sgd(std::nullopt));
  options.observer = &latch;
  options.input = tests::RigInput::kResident;  // a ring of an epoch
  options.examples = 400;
  Training training(options, latch, 30);
  CHECK(latch.are_applied("cpu", 59));
  const scheduler::Progress& progress = training.finish();
  CHECK(progress.staleness == sma::StalenessCounts{{0, 59}, {59, 1}});
}

TEST_CASE("a learner that stands still holds its slot of the ring, and the others wait for that in the end",
          "[async]") {
  OneHeld latch("cpu learner 0");
  RigOptions options = pushing({2}, async_sgd(std::nullopt));
  options.observer = &latch;
  Training training(options, latch, 30);
  CHECK(latch.reaches("cpu learner 1", 10, tests::kPatience));
  const scheduler::Progress& progress = training.finish();
  CHECK(progress.tasks == 60);
}

TEST_CASE("the server's weights do not change while a learner copies them", "[async]") {
  OneHeld latch("cpu learner 1", "assign weights");
  RigOptions options = pushing({2}, async_sgd(std::nullopt));
  options.observer = &latch;
  Training training(options, latch, 4);
  CHECK(latch.reaches("cpu learner 0", 1, tests::kPatience));
  CHECK_FALSE(latch.are_applied("cpu", 1, tests::kGrace));
  training.finish();
  CHECK(latch.are_applied("cpu", 8));
}

TEST_CASE("a push adds its gradient to what others have done since its pull", "[async]") {
  // Learner 1 holds mini-batch 1, so learner 0 trains with the others first.
  for (const bool is_scaled : {false, true}) {
    for (const bool clips : {false, true}) {
      for (const auto& devices : tests::device_lists()) {
        CAPTURE(is_scaled, clips, devices.size());
        const std::string held = devices.size() == 1 ? "cpu learner 1" : devices[1] + " learner 0";
        OneHeld latch(held);
        RigOptions options = pushing(tests::spread(2, devices), async_sgd(3));
        options.devices = devices;
        options.observer = &latch;
        options.rule = engine::Sgd{};
        options.synchronization.scale_by_staleness = is_scaled;
        if (clips) options.clip_gradient_norm = 0.3F;
        Training training(options, latch, 2);
        REQUIRE(latch.are_applied(devices[0], 3));
        const scheduler::Progress& progress = training.finish();
        CHECK(progress.staleness == sma::StalenessCounts{{0, 3}, {3, 1}});
        options.devices = {"cpu"};
        std::vector<float> expected = trained_alone(options, {0, 2, 3});
        const std::vector<float> initial = flat(TrainingRig(pushing({1}, {})).scheduler().snapshot());
        const std::vector<float> step = trained_alone(options, {1});
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] += (step[i] - initial[i]) / (is_scaled ? 4.0F : 1.0F);
        }
        CHECK(tests::largest_difference(step, initial) > 0.01);
        CHECK(tests::largest_difference(tests::model_weights(training.rig()), expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("between two pushes a learner takes plain steps, and the server applies the sum of the gradients",
          "[async]") {
  constexpr double kMomentum = 0.9;
  constexpr double kDecay = 0.02;
  constexpr double kRate = 0.1;
  constexpr int kEvery = 3;
  const bool clips = GENERATE(false, true);
  CAPTURE(clips);
  OneHeld latch("cpu learner 1");
  RigOptions options = pushing({2}, async_sgd(3, kEvery));
  options.observer = &latch;
  options.rule = engine::Sgd{.momentum = static_cast<float>(kMomentum), .weight_decay = static_cast<float>(kDecay)};
  if (clips) options.clip_gradient_norm = 0.3F;  // each gradient of the sum
  Training training(options, latch, 2);
  REQUIRE(latch.are_applied("cpu", 3));
  CHECK(training.finish().staleness == sma::StalenessCounts{{0, 3}, {3, 1}});
  // A learner adds up the changes that plain SGD makes from the weights w.
  RigOptions plain = options;
  plain.rule = engine::Sgd{};
  TrainingRig tensors(pushing({1}, {}));
  std::vector<dataflow::NamedTensor> weights = tensors.scheduler().snapshot();
  const std::vector<dataflow::NamedTensor> initial = weights;
  std::vector<double> velocity(flat(weights).size());
  const auto push = [&](const std::vector<dataflow::NamedTensor>& pulled, const std::vector<std::uint64_t>& batches) {
    const std::vector<float> from = flat(pulled);
    const std::vector<float> to = trained_alone(plain, batches, pulled);
    std::size_t i = 0;
    for (dataflow::NamedTensor& tensor : weights) {
      for (float& w : tensor.values) {
        velocity[i] = kMomentum * velocity[i] + static_cast<double>(to[i] - from[i]) - kRate * kEvery * kDecay * w;
        w += static_cast<float>(velocity[i++]);
      }
    }
  };
  push(weights, {0, 1, 2});  // learner 1 has 3, 4 and 5
  push(weights, {6, 7, 8});
  push(weights, {9, 10, 11});
  push(initial, {3, 4, 5});
  CHECK(tests::largest_difference(tests::model_weights(training.rig()), flat(weights)) < 1e-5);
}

TEST_CASE("a bound of 0 with one mini-batch a push has the bytes of s_sgd", "[async]") {
  for (const auto& devices : tests::device_lists()) {
    for (const int learners : {2, 3, 4}) {
      CAPTURE(devices.size(), learners);
      RigOptions options = pushing(tests::spread(learners, devices), sma::defaults_of(sma::Scheme::kSSgd));
      options.devices = devices;
      const std::vector<float> expected = [&] {
        TrainingRig rig(options);
        rig.run(20);
        return tests::model_weights(rig);
      }();
      options.synchronization = async_sgd(0);
      TrainingRig rig(options);
      rig.run(20);
      CHECK(tests::same_bytes(tests::model_weights(rig), expected));
    }
  }
}

TEST_CASE("one learner trains as with any other scheme", "[async]") {
  RigOptions options = pushing({1}, {});
  const auto trained = [](const RigOptions& of) {
    TrainingRig rig(of);
    rig.run(20);
    return tests::model_weights(rig);
  };
  const std::vector<float> expected = trained(options);
  for (const auto& scheme : {async_sgd(std::nullopt), async_sgd(0), async_sgd(2)}) {
    options.synchronization = scheme;
    CHECK(tests::same_bytes(trained(options), expected));
  }
}

TEST_CASE("learners that push in any order learn, and their model is saved and restored", "[async]") {
  for (const auto& devices : tests::device_lists()) {
    for (const int push_every : {1, 4}) {
      for (const std::optional<int> staleness : {std::optional<int>(1), std::optional<int>()}) {
        CAPTURE(devices.size(), push_every, staleness.value_or(-1));
        RigOptions options = pushing(tests::spread(4, devices), async_sgd(staleness, push_every));
        options.devices = devices;
        options.image = {2, 6, 6};
        options.layers = tests::normalized_network();
        options.statistic_batches = 4;
        options.moving_average_epochs = 0.2;
        options.learning_rate.base = 0.02;
        options.rule = engine::Sgd{.momentum = 0.5F};
        TrainingRig rig(options);
        const double before = rig.scheduler().evaluate(rig.test_ring()).loss();
        const int iterations = 40 / push_every;
        scheduler::Progress progress = rig.run(iterations);
        CHECK(progress.tasks == iterations * 4 * push_every);
        CHECK(progress.examples == progress.tasks * 4);
        CHECK(count_of(progress.staleness) == iterations * 4);
        if (staleness) CHECK(progress.staleness.rbegin()->first <= 3 * (2 * *staleness + 1));
        const double after = rig.scheduler().evaluate(rig.test_ring()).loss();
        CHECK(after < 0.5 * before);
        const scheduler::TrainingState state = rig.scheduler().save();
        TrainingRig again(options);
        for (std::size_t d = 0; d < devices.size(); ++d) again.pools()[d]->prepare(options.learners[d]);
        again.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners,
                                  options.learners);
        again.ring().restart(state.batches);
        CHECK(again.scheduler().evaluate(again.test_ring()).loss() == after);
        const scheduler::TrainingState same = again.scheduler().save();
        REQUIRE(same.learners.size() == 4);
        for (std::size_t j = 0; j < 4; ++j) {
          CHECK(flat(same.learners[j].weights) == flat(state.learners[j].weights));
          CHECK(flat(same.learners[j].optimizer.at(0)) == flat(state.learners[0].optimizer.at(0)));
          CHECK(same.learners[j].steps == static_cast<std::uint64_t>(iterations * 4));
        }
        CHECK(again.run(2).tasks == 2 * 4 * push_every);
        CHECK(again.scheduler().evaluate(again.test_ring()).loss() < before);
      }
    }
  }
}

TEST_CASE("all devices get the server's model where it is evaluated", "[async]") {
  const auto devices = tests::device_lists().back();
  if (devices.size() < 2) tests::skip_test("needs two cores");
  RigOptions options = pushing({1, 2}, async_sgd(std::nullopt));
  options.devices = devices;
  TrainingRig rig(options);
  rig.run(10);
  static_cast<void>(rig.scheduler().evaluate(rig.test_ring()));
  const auto weights_on = [&](std::size_t d) {
    const float* values = rig.pools()[d]->evaluation_weights();
    return std::vector<float>(values, values + rig.pools()[d]->training_plan().parameters().elements());
  };
  CHECK(tests::same_bytes(weights_on(0), weights_on(1)));
  CHECK_FALSE(tests::same_bytes(weights_on(0), tests::learner_weights(rig).front()));
}

TEST_CASE("a server takes over the state of s_sgd, and gives way to other schemes", "[async]") {
  RigOptions options = pushing({2}, sma::defaults_of(sma::Scheme::kSSgd));
  options.switches = {async_sgd(1), sma::defaults_of(sma::Scheme::kSma), async_sgd(std::nullopt, 2),
                      sma::defaults_of(sma::Scheme::kLocalSgd)};
  options.rule = engine::AdamW{};
  TrainingRig rig(options);
  rig.run(5);
  const scheduler::TrainingState before = rig.scheduler().save();
  const auto switch_to = [&](const sma::Options& scheme) {
    rig.scheduler().switch_to(scheme, scheduler::RateScaling::kKeep, std::vector<int>{2});
  };
  switch_to(options.switches[0]);
  const scheduler::TrainingState after = rig.scheduler().save();
  for (std::size_t slot = 0; slot < 2; ++slot) {
    CHECK(flat(after.learners[0].optimizer[slot]) == flat(before.learners[0].optimizer[slot]));
  }
  CHECK(flat(after.model) == flat(before.model));
  CHECK(after.learners[0].steps == 5);
  rig.run(3);
  CHECK(rig.scheduler().save().learners[1].steps == 5 + 2 * 3);
  for (std::size_t i = 1; i < options.switches.size(); ++i) {
    const std::vector<float> model = tests::model_weights(rig);
    switch_to(options.switches[i]);
    CHECK(tests::same_bytes(tests::model_weights(rig), model));
    // local_sgd keeps the optimizer's state, and gets that of the server: two learners have pushed three times.
    const bool is_kept = options.switches[i].scheme == sma::Scheme::kLocalSgd;
    CHECK(rig.scheduler().save().learners[0].steps == (is_kept ? 6 : 0));
    rig.run(3);
    CHECK_FALSE(tests::same_bytes(tests::model_weights(rig), model));
  }
}

TEST_CASE("the number of learners may change under a server", "[async]") {
  tests::check_resizes(pushing({1}, async_sgd(std::nullopt, 2)), 2);
}

TEST_CASE("an asynchronous training that diverges names learner and mini-batch, and keeps a finite model", "[async]") {
  for (const int push_every : {1, 3}) {
    for (const double rate : {30.0, 1e20}) {
      CAPTURE(push_every, rate);
      RigOptions options = pushing({3}, async_sgd(2, push_every));
      options.image = {2, 6, 6};
      options.layers = tests::small_network();
      options.learning_rate.base = rate;
      TrainingRig rig(options);
      tests::check_diverges(rig);
    }
  }
}
