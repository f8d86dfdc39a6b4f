// Tests that one job, seed and number of learners always give the same bytes, independent of timing.
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/host/topology.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"
#include "tests/support/weights.h"
#include "tests/support/zoo_layers.h"

namespace {

using namespace arbalest;
using tests::RigOptions;
using tests::TrainingRig;

// Delays every task of every stream by a random time.
class Delays final : public engine::StreamObserver {
 public:
  explicit Delays(std::uint64_t seed) : random_(seed, 3, 0) {}
  void before_task(const engine::Stream&, const engine::TaskInfo&) override {
    std::uint64_t microseconds = 0;
    {
      const std::lock_guard lock(mutex_);
      microseconds = random_.below(8) == 0 ? random_.below(1500) : 0;
    }
    if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  void after_task(const engine::Stream&, const engine::TaskInfo&) override {}

 private:
  std::mutex mutex_;
  dataflow::RandomSequence random_;
};

// The network has dropout, for randomness inside a step, and batch norm, whose running statistics averaging reads while
// the next step runs.
std::vector<dataflow::LayerDescription> small_network() {
  return {{"hidden", {"image"}, tests::dense_layer(24)},
          {"norm", {"hidden"}, std::make_shared<dataflow::BatchNormLayer>(dataflow::BatchNormLayer::Options{})},
          {"relu", {"norm"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"dropout", {"relu"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"logits", {"dropout"}, tests::dense_layer(3)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

std::vector<float> train(RigOptions options, engine::StreamObserver* observer) {
  if (options.layers.empty()) options.layers = small_network();
  options.observer = observer;
  TrainingRig rig(options);
  rig.run(30);
  return tests::model_weights(rig);
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_delays_change_nothing(const RigOptions& options) {
  const std::vector<float> expected = train(options, nullptr);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Delays delays(seed);
    CHECK(same_bytes(train(options, &delays), expected));
  }
  RigOptions other = options;
  other.seed = 2;
  CHECK_FALSE(same_bytes(train(other, nullptr), expected));
}

}  // namespace

TEST_CASE("random delays before every task change no bit on one device", "[training]") {
  RigOptions options;
  options.learners = {4};
  check_delays_change_nothing(options);
}

TEST_CASE("random delays before every task change no bit on two devices with tau 3", "[training]") {
  const auto devices = tests::two_devices(engine::host::allowed_cores());
  if (devices.empty()) tests::skip_test("needs two cores");
  RigOptions options;
  options.devices = devices;
  options.learners = {2, 1};
  options.synchronization.period = 3;
  options.learning_rate.curve = scheduler::MultistepDrops{{{1.0, 0.5}}};
  check_delays_change_nothing(options);
}

TEST_CASE("random delays before every task change no bit with data on the device", "[training]") {
  RigOptions options;
  options.learners = {3};
  options.input = tests::RigInput::kResident;
  check_delays_change_nothing(options);
}

TEST_CASE("random delays before every task change no bit of schemes with long rounds", "[training]") {
  const auto devices = tests::two_devices(engine::host::allowed_cores());
  sma::Options local_sgd = sma::defaults_of(sma::Scheme::kLocalSgd);
  local_sgd.period = 3;
  local_sgd.local_state = sma::LocalState::kAverage;
  sma::Options diloco = sma::defaults_of(sma::Scheme::kDiloco);
  diloco.period = 4;
  for (const sma::Options& scheme : {local_sgd, diloco}) {
    CAPTURE(sma::name_of(scheme.scheme));
    RigOptions options;
    options.learners = {3};
    if (!devices.empty()) {
      options.devices = devices;
      options.learners = {2, 1};
    }
    options.learning_rate.base = 0.02;
    options.synchronization = scheme;
    check_delays_change_nothing(options);
  }
}

TEST_CASE("random delays before every task change no bit of s_sgd with several parts", "[training]") {
  const auto devices = tests::two_devices(engine::host::allowed_cores());
  RigOptions options;
  options.learners = {3};
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  options.synchronization.bucket_bytes = 64;
  SECTION("on one device") {}
  SECTION("on two devices, with a model that is gathered on the way") {
    if (devices.empty()) tests::skip_test("needs two cores");
    options.devices = devices;
    options.learners = {2, 1};
    options.moving_average_epochs = 0.5;
  }
  check_delays_change_nothing(options);
}

TEST_CASE("random delays before every task change no bit of a switch from s_sgd to local_sgd", "[training]") {
  RigOptions options;
  options.layers = small_network();
  options.learners = {4};
  options.most_learners = 4;
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  options.synchronization.bucket_bytes = 64;
  sma::Options local_sgd = sma::defaults_of(sma::Scheme::kLocalSgd);
  local_sgd.period = 3;
  options.switches = {local_sgd};
  const auto train_both = [&](engine::StreamObserver* observer) {
    options.observer = observer;
    TrainingRig rig(options);
    rig.run(10);
    rig.pools().front()->prepare(2);
    rig.scheduler().switch_to(local_sgd, scheduler::RateScaling::kKeep, std::vector<int>{2});
    rig.run(11);  // within a round
    return tests::model_weights(rig);
  };
  const std::vector<float> expected = train_both(nullptr);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Delays delays(seed);
    CHECK(same_bytes(train_both(&delays), expected));
  }
}

TEST_CASE("training from a ring and from data on the device gives the same bytes", "[training]") {
  RigOptions options;
  options.layers = small_network();
  options.learners = {3};
  options.examples = 4 * 24 + 3;  // so that evaluation pads its last mini-batch
  SECTION("on one device") {}
  SECTION("on two devices") {
    options.devices = tests::two_devices(engine::host::allowed_cores());
    if (options.devices.empty()) tests::skip_test("needs two cores");
    options.learners = {2, 1};
  }
  options.input = tests::RigInput::kBytes;
  TrainingRig ring(options);
  options.input = tests::RigInput::kResident;
  TrainingRig cached(options);
  const scheduler::Evaluation before = ring.scheduler().evaluate(ring.test_ring());
  for (int part = 0; part < 3; ++part) {
    CHECK(ring.run(20).sums.loss() == cached.run(20).sums.loss());
    const scheduler::Evaluation expected = ring.scheduler().evaluate(ring.test_ring());
    const scheduler::Evaluation found = cached.scheduler().evaluate(cached.test_ring());
    CHECK(found.loss() == expected.loss());
    CHECK(found.sums.values == expected.sums.values);
    CHECK(found.examples == options.examples);
    CHECK(found.loss() < before.loss());
  }
  CHECK(same_bytes(tests::model_weights(ring), tests::model_weights(cached)));
}

TEST_CASE("two threads per learner give the same bits in every run", "[training]") {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) tests::skip_test("needs two cores");
  // Two devices on the same two cores, so that all threads compete.
  const std::string pair = "cpu:" + std::to_string(cores[0]) + "," + std::to_string(cores[1]);
  RigOptions options;
  options.layers = tests::lenet();  // large enough for oneDNN to split its work
  options.image = {1, 28, 28};
  options.classes = 10;
  options.batch = 8;
  options.learning_rate.base = 0.01;
  options.devices = {pair, pair};
  options.learners = {1, 1};
  const std::vector<float> expected = train(options, nullptr);
  for (std::uint64_t run = 0; run < 5; ++run) {
    CAPTURE(run);
    Delays delays(run);
    CHECK(same_bytes(train(options, run % 2 == 0 ? nullptr : &delays), expected));
  }
}

TEST_CASE("the central model is the same on every device", "[training]") {
  const auto devices = tests::two_devices(engine::host::allowed_cores());
  if (devices.empty()) tests::skip_test("needs two cores");
  RigOptions options;
  options.devices = devices;
  options.learners = {2, 2};
  TrainingRig rig(options);
  rig.run(20);
  rig.scheduler().evaluate(rig.test_ring());  // copies z on every device
  const auto elements = static_cast<std::size_t>(rig.pools()[0]->training_plan().parameters().elements());
  CHECK(std::memcmp(rig.pools()[0]->evaluation_weights(), rig.pools()[1]->evaluation_weights(),
                    elements * sizeof(float)) == 0);
}
