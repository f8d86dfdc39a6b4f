// Asynchronous SGD over several processes, whose worlds are in threads of this process.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/host/topology.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/latch.h"
#include "tests/support/process_rig.h"
#include "tests/support/schemes.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/staleness.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using tests::async_sgd;
using tests::count_of;
using tests::expect;
using tests::flat;
using tests::Outcome;
using tests::RigOptions;
using tests::Script;
using tests::TrainingRig;

std::string one_core() { return "cpu:" + std::to_string(engine::host::allowed_cores().front()); }

RigOptions pushing(const sma::Options& scheme) {
  RigOptions options;
  options.devices = {one_core()};
  options.synchronization = scheme;
  return options;
}

std::vector<Outcome> train_over(const std::vector<int>& learners, const RigOptions& options, const Script& script) {
  std::vector<tests::ProcessPart> parts;
  for (const int own : learners) parts.push_back({options.devices, {own}});
  return tests::train_over(parts, options, script);
}

RigOptions normalized(const sma::Options& scheme) {
  RigOptions options = pushing(scheme);
  options.image = {2, 6, 6};
  options.layers = tests::normalized_network();
  options.statistic_batches = 4;
  options.learning_rate.base = 0.02;
  options.rule = engine::Sgd{.momentum = 0.5F};
  return options;
}

// Holds the gradients of a stream's learner, and counts the finished gradients of all streams of this observer.
class Held final : public engine::StreamObserver {
 public:
  explicit Held(bool holds) : holds_(holds) {}

  void before_task(const engine::Stream&, const engine::TaskInfo& task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return task.label != std::string("gradient") || !holds_; });
  }
  void after_task(const engine::Stream&, const engine::TaskInfo& task) override {
    const std::lock_guard lock(mutex_);
    if (task.label == std::string("gradient")) ++gradients_;
    changed_.notify_all();
  }
  void release() {
    const std::lock_guard lock(mutex_);
    holds_ = false;
    changed_.notify_all();
  }
  bool reaches(int gradients, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return gradients_ >= gradients; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_;
  int gradients_ = 0;
};

}  // namespace

TEST_CASE("async processes: a bound of 0 with one mini-batch a push has the bytes of s_sgd", "[async]") {
  const Script script = [](TrainingRig& rig) { return rig.run(20); };
  const Outcome expected =
      tests::train_alone({{one_core()}, {4}}, pushing(sma::defaults_of(sma::Scheme::kSSgd)), script);
  tests::check_equal(expected, train_over({2, 2}, pushing(async_sgd(0)), script));
}

TEST_CASE("async processes: learners that push in any order learn, and all processes have the same model", "[async]") {
  for (const std::vector<int>& learners : {std::vector<int>{1, 1}, {2, 2}, {1, 2, 1}}) {
    for (const int push_every : {1, 3}) {
      for (const std::optional<int> staleness : {std::optional<int>(1), std::optional<int>()}) {
        CAPTURE(learners.size(), push_every, staleness.value_or(-1));
        const int all = std::reduce(learners.begin(), learners.end());
        RigOptions options = normalized(async_sgd(staleness, push_every));
        options.moving_average_epochs = 0.3;
        const std::vector<Outcome> outcomes = train_over(learners, options, [&](TrainingRig& rig) {
          const double before = rig.scheduler().evaluate(rig.test_ring()).loss();
          const int own = rig.pools().front()->count();
          const int iterations = 60 / push_every;
          scheduler::Progress progress = rig.run(iterations);
          expect(progress.tasks == iterations * own * push_every, "all mini-batches");
          expect(count_of(progress.staleness) == iterations * own, "a staleness for each push");
          if (staleness) expect(progress.staleness.rbegin()->first <= (all - 1) * (2 * *staleness + 1), "a bound");
          expect(rig.scheduler().batches() == static_cast<std::uint64_t>(iterations * all * push_every),
                 "the position");
          const double after = rig.scheduler().evaluate(rig.test_ring()).loss();
          expect(after < 0.6 * before, "a lower loss");
          progress.add(rig.run(2));
          return progress;
        });
        for (const Outcome& outcome : outcomes) {
          CHECK((outcome.model == outcomes.front().model));
          CHECK(outcome.loss == outcomes.front().loss);
        }
      }
    }
  }
}

TEST_CASE("async processes: a bound of 0 gives the weights of rounds that are computed learner by learner", "[async]") {
  constexpr int kRounds = 4;
  RigOptions options = pushing(async_sgd(0, 2));
  options.rule = engine::Sgd{};
  const auto trained_from = [&](const std::vector<dataflow::NamedTensor>& weights, std::uint64_t first) {
    RigOptions alone = options;
    alone.learners = {1};
    alone.synchronization = {};
    alone.batch_of = [first](std::uint64_t number) { return first + 2 * (number % 2); };
    TrainingRig rig(alone);
    rig.scheduler().load(weights);
    rig.run(2);
    return rig.scheduler().snapshot();
  };
  TrainingRig start(options);
  std::vector<dataflow::NamedTensor> expected = start.scheduler().snapshot();
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    // The first process has the even mini-batches.
    const std::vector<float> first = flat(trained_from(expected, 4 * round));
    const std::vector<float> second = flat(trained_from(expected, 4 * round + 1));
    std::size_t i = 0;
    for (dataflow::NamedTensor& tensor : expected) {
      for (float& w : tensor.values) {
        w = first[i] + second[i] - w;
        ++i;
      }
    }
  }
  const std::vector<float> weights = flat(expected);
  const Script script = [](TrainingRig& rig) { return rig.run(kRounds); };
  for (const Outcome& outcome : train_over({1, 1}, options, script)) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CHECK(outcome.model[i] == Approx(static_cast<double>(weights[i])).margin(1e-5));
    }
  }
}

TEST_CASE("async processes: all processes save the whole state of the servers' optimizers", "[async]") {
  for (const engine::UpdateRule& rule : {engine::UpdateRule(engine::Adagrad{}), engine::UpdateRule(engine::AdamW{})}) {
    RigOptions options = pushing(async_sgd(2));
    options.rule = rule;
    options.learning_rate.base = 0.01;
    std::vector<std::vector<float>> states(2);
    const std::vector<Outcome> outcomes = train_over({1, 1}, options, [&](TrainingRig& rig) {
      scheduler::Progress progress = rig.run(12);
      const scheduler::TrainingState state = rig.scheduler().save();
      const std::size_t own = state.learners[0].is_here() ? 0 : 1;
      expect(state.learners[own].steps == 24, "the server has counted all pushes");
      states[own] = flat(state.learners[own].optimizer.at(0));
      return progress;
    });
    CHECK(states[0] == states[1]);
    CHECK(std::ranges::count(states[0], 0.0F) < static_cast<std::ptrdiff_t>(states[0].size() / 2));
    CHECK((outcomes[0].model == outcomes[1].model));
    CHECK((outcomes[0].replicas[0] == outcomes[1].replicas[0]));  // save() has handed the servers' weights out
  }
}

TEST_CASE("async processes: a saved state goes on in another number of processes", "[async]") {
  const RigOptions options = normalized(async_sgd(1, 2));
  RigOptions alone = options;
  alone.learners = {4};
  TrainingRig first(alone);
  first.run(10);
  const double loss = first.scheduler().evaluate(first.test_ring()).loss();
  const scheduler::TrainingState state = first.scheduler().save();
  const Script go_on = [&](TrainingRig& rig) {
    rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners,
                            std::vector<int>{rig.pools().front()->count()});
    rig.ring().restart(state.batches);
    expect(rig.scheduler().evaluate(rig.test_ring()).loss() == loss, "the saved model");
    const scheduler::TrainingState same = rig.scheduler().save();
    for (const scheduler::LearnerState& learner : same.learners) {
      if (!learner.is_here()) continue;
      expect(flat(learner.weights) == flat(state.learners[0].weights), "the saved weights");
      expect(flat(learner.optimizer.at(0)) == flat(state.learners[0].optimizer.at(0)), "the saved state");
      expect(learner.steps == state.learners[0].steps, "the saved steps");
    }
    const scheduler::Progress progress = rig.run(3);
    for (const scheduler::LearnerState& learner : rig.scheduler().save().learners) {
      if (learner.is_here()) expect(learner.steps == state.learners[0].steps + 3 * 4, "a step for each push");
    }
    return progress;
  };
  for (const std::vector<int>& learners : {std::vector<int>{2, 2}, {1, 1, 1, 1}}) {
    const std::vector<Outcome> outcomes = train_over(learners, options, go_on);
    for (const Outcome& outcome : outcomes) CHECK((outcome.model == outcomes.front().model));
  }
}

TEST_CASE("async processes: a server takes over the state of s_sgd, gives way to other schemes, and is resized",
          "[async]") {
  RigOptions options = pushing(sma::defaults_of(sma::Scheme::kSSgd));
  options.switches = {async_sgd(1), sma::defaults_of(sma::Scheme::kSma), async_sgd(std::nullopt, 2),
                      sma::defaults_of(sma::Scheme::kLocalSgd)};
  options.rule = engine::AdamW{};
  options.learning_rate.base = 0.01;
  options.most_learners = 2;
  const std::vector<Outcome> outcomes = train_over({2, 2}, options, [&](TrainingRig& rig) {
    scheduler::Progress progress = rig.run(5);
    for (std::size_t i = 0; i < options.switches.size(); ++i) {
      const scheduler::TrainingState before = rig.scheduler().save();
      rig.scheduler().switch_to(options.switches[i], scheduler::RateScaling::kKeep, std::vector<int>{2});
      const scheduler::TrainingState after = rig.scheduler().save();
      expect(flat(after.model) == flat(before.model), "the same model");
      const std::size_t own = before.learners[0].is_here() ? 0 : 2;
      if (i == 0) expect(flat(after.learners[own].optimizer[1]) == flat(before.learners[own].optimizer[1]), "state");
      progress.add(rig.run(4));
      if (i == 0) {
        expect(rig.scheduler().save().learners[own].steps == 5 + 4 * 4, "steps of the server");
        rig.resize({1});
        progress.add(rig.run(3));
        rig.resize({2});
        progress.add(rig.run(3));
      }
    }
    return progress;
  });
  CHECK((outcomes[0].model == outcomes[1].model));
}

TEST_CASE("async processes: while one process's learner is held, the other completes the bound and one more",
          "[async]") {
  for (const int bound : {0, 2}) {
    CAPTURE(bound);
    const int push_every = 2;
    Held held(true);
    Held free(false);
    bool reached = false;
    bool passed = true;
    std::thread watcher([&] {
      const int most = (bound + 1) * push_every;
      reached = free.reaches(most, tests::kPatience);
      passed = free.reaches(most + 1, tests::kGrace);
      held.release();
    });
    tests::on_each_rank(2, [&](engine::process::World& world) {
      RigOptions options = pushing(async_sgd(bound, push_every));
      options.world = &world;
      options.observer = world.rank() == 0 ? &held : &free;
      TrainingRig rig(options);
      rig.run(12);
    });
    watcher.join();
    CHECK(reached);
    CHECK_FALSE(passed);
  }
}

TEST_CASE("async processes: a process that hangs before all are drained is named", "[async]") {
  const std::vector<std::exception_ptr> errors = tests::errors_of_ranks(
      2,
      [](engine::process::World& world) {
        RigOptions options = pushing(async_sgd(std::nullopt));
        options.world = &world;
        TrainingRig rig(options);
        rig.run(3);
        rig.scheduler().advance(rig.ring(), 2);
        if (world.rank() == 1) world.check(60.0);  // its learners go on, but it does not drain
        rig.scheduler().drain();
      },
      {.peer_timeout_seconds = 3.0, .operation_timeout_seconds = 6.0}, tests::announce);
  for (const std::exception_ptr& error : errors) {
    REQUIRE(error);
    CHECK_THROWS_WITH(std::rethrow_exception(error), ContainsSubstring("rank 1 on host here hangs"));
  }
}

TEST_CASE("async processes: a process whose shard does not answer is named", "[async]") {
  const std::vector<std::exception_ptr> errors = tests::errors_of_ranks(
      3,
      [](engine::process::World& world) {
        RigOptions options = pushing(async_sgd(0, 2));
        options.world = &world;
        TrainingRig rig(options);
        if (world.rank() == 1) world.check(60.0);  // it sends heartbeats, but no weights
        rig.run(1);
      },
      {.peer_timeout_seconds = 2.0, .operation_timeout_seconds = 4.0}, tests::announce);
  for (const std::exception_ptr& error : errors) {
    REQUIRE(error);
    CHECK_THROWS_WITH(std::rethrow_exception(error), ContainsSubstring("rank 1 on host here hangs"));
  }
}

TEST_CASE("async processes: each process may have several devices", "[async]") {
  const std::vector<std::string> devices = tests::device_lists().back();
  if (devices.size() < 2) tests::skip_test("needs two cores");
  const RigOptions options = normalized(async_sgd(1));
  const std::vector<Outcome> outcomes =
      tests::train_over({{devices, {1, 1}}, {devices, {2, 1}}}, options, [&](TrainingRig& rig) {
        const double before = rig.scheduler().evaluate(rig.test_ring()).loss();
        scheduler::Progress progress = rig.run(40);
        expect(rig.scheduler().evaluate(rig.test_ring()).loss() < 0.6 * before, "a lower loss");
        return progress;
      });
  CHECK((outcomes[0].model == outcomes[1].model));
  CHECK(outcomes[0].loss == outcomes[1].loss);
}

TEST_CASE("async processes: a divergence ends all processes at the same mini-batch, and the model stays finite",
          "[async]") {
  constexpr int kIterations = 10;
  const std::vector<int> learners = {1, 2};
  std::vector<std::uint64_t> batches(learners.size());
  std::vector<std::string> found(learners.size());
  std::vector<std::vector<float>> models(learners.size());
  tests::on_each_rank(static_cast<int>(learners.size()), [&](engine::process::World& world) {
    const auto place = static_cast<std::size_t>(world.rank());
    RigOptions options = pushing(async_sgd(2));
    options.image = {2, 6, 6};
    options.layers = tests::small_network();
    options.learning_rate.base = 1e20;
    options.learners = {learners[place]};
    options.world = &world;
    TrainingRig rig(options);
    bool has_ended = false;
    for (int iteration = 0; iteration < kIterations && !has_ended; ++iteration) {
      rig.run(1);
      has_ended = world.any_of(rig.scheduler().has_divergence() ? 1 : 0) != 0;
    }
    batches[place] = rig.scheduler().batches();
    if (const auto divergence = rig.scheduler().take_divergence()) found[place] = divergence->what();
    expect(!rig.scheduler().has_divergence(), "the divergence has been taken");
    models[place] = flat(rig.scheduler().snapshot());
  });
  CHECK(batches[0] == batches[1]);
  CHECK(batches[0] < static_cast<std::uint64_t>(kIterations * std::reduce(learners.begin(), learners.end())));
  CHECK_THAT(found[0] + found[1], ContainsSubstring("training diverged: learner ") && ContainsSubstring("mini-batch "));
  CHECK(std::ranges::all_of(models[0], [](float value) { return std::isfinite(value); }));
  CHECK(models[0] == models[1]);
}
