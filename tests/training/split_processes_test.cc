// Models that are split over the devices of several processes, whose worlds are in threads of this process.
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/device_failure.h"
#include "tests/support/process_rig.h"
#include "tests/support/small_training.h"

namespace {

using namespace arbalest;
using dataflow::DenseSplit;
using tests::Outcome;
using tests::ProcessPart;
using tests::RigOptions;
using tests::TrainingRig;

constexpr int kSteps = 9;

// Data-parallel layers before layers that are split by columns, by rows, and by columns again.
std::vector<dataflow::LayerDescription> network() {
  const auto relu = std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu);
  const auto norm = std::make_shared<dataflow::BatchNormLayer>(dataflow::BatchNormLayer::Options{});
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 6;
  conv.window = {{3, 3}, {1, 1}};
  return {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"norm", {"conv"}, norm},
          {"relu0", {"norm"}, relu},
          {"dense1", {"relu0"}, tests::dense_layer(24, DenseSplit::kColumns)},
          {"relu1", {"dense1"}, relu},
          {"drop1", {"relu1"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"dense2", {"drop1"}, tests::dense_layer(7, DenseSplit::kRows)},
          {"dense3", {"dense2"}, tests::dense_layer(12, DenseSplit::kColumns)},
          {"logits", {"dense3"}, tests::dense_layer(3)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

RigOptions split_options() {
  RigOptions options;
  options.image = {2, 6, 6};
  options.layers = network();
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  options.synchronization.bucket_bytes = 256;  // several parts of the backward pass, which are reduced beside it
  options.learning_rate.base = 0.05;
  options.statistic_batches = 5;
  options.moving_average_epochs = 0.2;
  options.compare_rounds = 2;
  return options;
}

// Devices of a process, which may share a core.
ProcessPart devices(int count) {
  const std::string core = "cpu:" + std::to_string(engine::host::allowed_cores().front());
  return {std::vector<std::string>(static_cast<std::size_t>(count), core),
          std::vector<int>(static_cast<std::size_t>(count), 1)};
}

Outcome outcome_of(TrainingRig& rig, scheduler::Progress progress) {
  const scheduler::Evaluation evaluation = rig.scheduler().evaluate(rig.test_ring());
  return {.model = tests::flatten(rig.scheduler().snapshot()),
          .replicas = {},
          .loss = evaluation.loss(),
          .accuracy = tests::accuracy_of(evaluation),
          .distance = progress.sums.loss(),
          .examples = static_cast<double>(evaluation.examples)};
}

// The end of a training in one process.
Outcome train_alone(const RigOptions& options, int count) {
  TrainingRig rig(tests::options_of(devices(count), options));
  return outcome_of(rig, rig.run(kSteps));
}

using Body = std::function<Outcome(TrainingRig&, std::size_t process)>;

// The outcomes of processes with these numbers of devices.
std::vector<Outcome> over_processes(const std::vector<int>& counts, const RigOptions& options, const Body& body) {
  std::vector<Outcome> outcomes(counts.size());
  tests::on_each_rank(static_cast<int>(counts.size()), [&](engine::process::World& world) {
    const auto process = static_cast<std::size_t>(world.rank());
    RigOptions own = tests::options_of(devices(counts[process]), options);
    own.world = &world;
    TrainingRig rig(own);
    outcomes[process] = body(rig, process);
  });
  return outcomes;
}

void check_same(const std::vector<Outcome>& processes, const Outcome& alone) {
  double loss = 0.0;
  for (const Outcome& process : processes) {
    CHECK((process.model == alone.model));
    CHECK(process.loss == alone.loss);
    CHECK(process.accuracy == alone.accuracy);
    CHECK(process.examples == alone.examples);
    loss += process.distance;
  }
  CHECK(loss == Approx(alone.distance));
}

}  // namespace

TEST_CASE("split processes: a model trains and is evaluated to the bytes of one process", "[split]") {
  for (const bool has_average : {false, true}) {
    CAPTURE(has_average);
    RigOptions options = split_options();
    if (!has_average) options.moving_average_epochs = 0.0;
    const Body train = [](TrainingRig& rig, std::size_t) { return outcome_of(rig, rig.run(kSteps)); };
    const Outcome two = train_alone(options, 2);
    check_same(over_processes({1, 1}, options, train), two);
    const Outcome four = train_alone(options, 4);
    check_same(over_processes({2, 2}, options, train), four);
    CHECK((two.model != four.model));
    // The gradients of one and three devices are added in another order.
    const std::vector<Outcome> unequal = over_processes({1, 3}, options, train);
    CHECK((unequal[0].model == unequal[1].model));
    REQUIRE(unequal[0].model.size() == four.model.size());
    for (std::size_t i = 0; i < four.model.size(); ++i) {
      CHECK(unequal[0].model[i] == Approx(four.model[i]).margin(1e-4));
    }
  }
}

TEST_CASE("split processes: fewer test mini-batches than devices are evaluated once", "[split]") {
  RigOptions options = split_options();
  options.examples = 12;  // three mini-batches, so one of four processes has none
  options.statistic_batches = 2;
  const Body train = [](TrainingRig& rig, std::size_t) { return outcome_of(rig, rig.run(3)); };
  TrainingRig alone(tests::options_of(devices(4), options));
  const Outcome expected = outcome_of(alone, alone.run(3));
  CHECK(expected.examples == 12.0);
  check_same(over_processes({1, 1, 1, 1}, options, train), expected);
}

TEST_CASE("split processes: a saved state goes on in another number of processes", "[split]") {
  const RigOptions options = split_options();
  const std::vector<int> counts = {1, 1};
  std::vector<scheduler::TrainingState> states(counts.size());
  const Body save = [&](TrainingRig& rig, std::size_t process) {
    rig.run(4);
    states[process] = rig.scheduler().save();
    return outcome_of(rig, rig.run(kSteps - 4));
  };
  const std::vector<Outcome> expected = over_processes(counts, options, save);
  scheduler::TrainingState state = states[0];
  REQUIRE(state.learners.size() == 2);
  CHECK_FALSE(state.model.empty());
  CHECK(states[1].model.empty());  // rank 0 has what is not of one learner
  CHECK_FALSE(state.learners[1].is_here());
  state.learners[1] = states[1].learners[1];

  const auto go_on = [&](TrainingRig& rig, int own) {
    rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners,
                            std::vector<int>(static_cast<std::size_t>(own), 1));
    rig.ring().restart(state.batches);
    return outcome_of(rig, rig.run(kSteps - 4));
  };
  TrainingRig alone(tests::options_of(devices(2), options));
  const Outcome in_one = go_on(alone, 2);
  CHECK((in_one.model == expected[0].model));
  CHECK(in_one.loss == expected[0].loss);
  check_same(over_processes(counts, options, [&](TrainingRig& rig, std::size_t) { return go_on(rig, 1); }), in_one);
  // Four devices have four learners, which begin with zero momentum.
  TrainingRig with_four(tests::options_of(devices(4), options));
  const Outcome four = go_on(with_four, 4);
  check_same(over_processes({2, 2}, options, [&](TrainingRig& rig, std::size_t) { return go_on(rig, 2); }), four);
}

TEST_CASE("split processes: each device has its part, and receives the bytes of the formula", "[split]") {
  const RigOptions options = split_options();
  over_processes({1, 1}, options, [&](TrainingRig& rig, std::size_t process) {
    for (const auto& entry : rig.pools().front()->training_plan().parameters().entries()) {
      if (entry.name == "dense1.weight") tests::expect(entry.spec.shape[0] == 12, "half of the units");
      if (entry.name == "dense2.weight") tests::expect(entry.spec.shape[1] == 12, "half of the inputs");
    }
    const std::uint64_t before = rig.exchange()->received_bytes(static_cast<int>(process));
    rig.run(kSteps);
    // The pair exchanges 96 inputs and 7 outputs, both ways. The third layer exchanges its 7 inputs and half of its 12
    // outputs, both ways.
    const std::int64_t floats = 2 * options.batch * (96 + 7) + 2 * options.batch * (7 + 12 / 2);
    tests::expect(rig.exchange()->received_bytes(static_cast<int>(process)) - before ==
                      static_cast<std::uint64_t>(kSteps * floats) * sizeof(float),
                  "bytes");
    return Outcome{};
  });
}

TEST_CASE("split processes: a device that fails ends the exchanges of all processes", "[split]") {
  std::vector<std::string> messages(2);
  tests::MemoryNetwork network(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(rank);
      tests::FailingDevice failing;
      RigOptions own = tests::options_of(devices(2), split_options());
      own.world = world.get();
      own.observer = &failing;
      try {
        TrainingRig rig(own);
        rig.run(2);
        if (rank == 1) failing.fail(rig.pools()[1]->learners().front()->stream(), "gradient");
        rig.run(4);
      } catch (const engine::Error& error) {
        messages[static_cast<std::size_t>(rank)] = error.what();
        world->announce_failure(error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_THAT(messages[1], ContainsSubstring(fmt::format("gradient: {}", tests::kDeviceFailure)));
  // The news of the failure and the broken exchange arrive in any order.
  CHECK_THAT(messages[0], ContainsSubstring("rank 1 on host here") || ContainsSubstring("exchange between devices"));
}

namespace {

// Makes an element of a learner's next gradient infinite.
class PoisonedGradient final : public engine::StreamObserver {
 public:
  void poison(const engine::Stream& stream, float* gradient) {
    gradient_ = gradient;
    stream_.store(&stream);
  }
  void before_task(const engine::Stream&, const engine::TaskInfo&) override {}
  void after_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    if (stream_.load() != &stream || task.label != std::string("gradient")) return;
    *gradient_ = std::numeric_limits<float>::infinity();
    stream_.store(nullptr);
  }

 private:
  float* gradient_ = nullptr;
  std::atomic<const engine::Stream*> stream_ = nullptr;  // set last
};

// The first element of a layer's weights among those of a learner.
std::int64_t offset_of(const dataflow::ParameterLayout& layout, const std::string& name) {
  for (const auto& entry : layout.entries()) {
    if (entry.name == name) return entry.offset;
  }
  throw std::invalid_argument(name);
}

}  // namespace

TEST_CASE("split processes: a step that one device refuses is a divergence, not faulty memory", "[split]") {
  std::vector<std::string> found(2);
  tests::on_each_rank(2, [&](engine::process::World& world) {
    PoisonedGradient poisoned;
    RigOptions own = tests::options_of(devices(1), split_options());
    own.synchronization.bucket_bytes = std::int64_t{1} << 20;  // a gradient is one task
    own.world = &world;
    own.observer = &poisoned;
    TrainingRig rig(own);
    rig.run(2);
    const auto& pool = rig.pools().front();
    const auto& learner = pool->learners().front();
    if (world.rank() == 1) {
      poisoned.poison(learner->stream(),
                      learner->gradient() + offset_of(pool->training_plan().parameters(), "dense1.weight"));
    }
    rig.run(6);  // compares the devices' copies three times
    if (const auto divergence = rig.scheduler().take_divergence()) {
      found[static_cast<std::size_t>(world.rank())] = divergence->what();
    }
  });
  CHECK(found[0].empty());
  CHECK_THAT(found[1],
             ContainsSubstring("mini-batch 5 ") && ContainsSubstring("1 elements of its step are not finite"));
}
