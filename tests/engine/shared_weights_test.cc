// Hogwild's passes: a copy of the shared weights, and a step on them.
#include "engine/shared_weights.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "engine/backends/devices.h"
#include "tests/engine/update_vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::SharedCopy;
using engine::SharedUpdate;
using engine::SharedWeights;

const engine::DeviceSpec kCpu = engine::parse_device("cpu");

// One learner on the shared weights. Device memory of the CPU is host memory.
class Learner {
 public:
  Learner(engine::Device& device, SharedWeights& shared, Vectors vectors, int threads)
      : shared_(shared), vectors_(std::move(vectors)), stream_(device.create_stream({"learner", threads})) {
    vectors_.state.resize(engine::state_slots(vectors_.rule).size(), Floats(kElements, 0.0F));
    parameters_.resize(vectors_.gradients.size(), vectors_.step);
    for (std::size_t step = 0; step < parameters_.size(); ++step) {
      std::ranges::copy(engine::moment_corrections(vectors_.rule, step + 1), parameters_[step].moment_corrections);
    }
  }

  // Enqueues a copy, and a step with gradient number `step`. `between` runs after the copy has ended.
  template <typename Between>
  void step(std::size_t step, const Between& between) {
    engine::enqueue(*stream_, SharedCopy{&shared_, vectors_.weights.data(), kElements, &steps_}, "copy");
    between();
    WeightUpdate update{.weights = vectors_.weights.data(),
                        .gradient = vectors_.gradients[step].data(),
                        .ranges = vectors_.ranges,
                        .rule = vectors_.rule,
                        .gradient_scale = vectors_.gradient_scale ? &*vectors_.gradient_scale : nullptr,
                        .step = &parameters_[step],
                        .non_finite = &vectors_.non_finite};
    if (!vectors_.statistics.empty()) update.statistics = vectors_.statistics[step].data();
    for (std::size_t slot = 0; slot < vectors_.state.size(); ++slot) update.state[slot] = vectors_.state[slot].data();
    engine::enqueue(*stream_, SharedUpdate{&shared_, update, &steps_, &staleness_}, "update");
  }
  void step(std::size_t step) {
    this->step(step, [] {});
  }
  void wait() { stream_->record().synchronize(); }

  const Vectors& vectors() const { return vectors_; }
  std::int64_t staleness() const { return staleness_; }

 private:
  SharedWeights& shared_;
  Vectors vectors_;
  std::vector<StepParameters> parameters_;  // by step
  std::uint64_t steps_ = 0;
  std::int64_t staleness_ = -1;
  std::unique_ptr<engine::Stream> stream_;  // last: its work uses the others
};

TEST_CASE("one learner's steps on shared weights have the bits of steps on its own weights") {
  const int threads = GENERATE(1, 3);
  const auto device = engine::open_device(kCpu);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), threads);
    Vectors vectors = with_steps(rule, 4);
    vectors.wants_rounded = false;
    vectors.gradient_scale = 0.5F;
    vectors.statistics = {random_floats(kElements, 40), random_floats(kElements, 41), random_floats(kElements, 42),
                          random_floats(kElements, 43)};
    vectors.ranges = {{0, 500, 1.0F, 1.0F}, {500, 700, 1.0F, 1.0F, 0.25F}, {700, kElements, 0.5F, 3.0F}};
    Floats weights = vectors.weights;
    SharedWeights shared{weights.data()};
    Learner learner(*device, shared, vectors, threads);
    for (std::size_t step = 0; step < 4; ++step) {
      learner.step(step);
      learner.wait();
      CHECK(learner.staleness() == 0);
    }
    vectors.run(false, threads);
    CHECK(weights == vectors.weights);
    CHECK(learner.vectors().state == vectors.state);
    CHECK(learner.vectors().non_finite == 0);
    CHECK(shared.steps == 4);
  }
}

TEST_CASE("a step changes the shared weights as others have left them, and knows how many they were") {
  const auto device = engine::open_device(kCpu);
  const UpdateRule rule = Sgd{.weight_decay = 0.01F};
  const Vectors vectors = with_steps(rule, 1);
  Floats weights = vectors.weights;
  SharedWeights shared{weights.data()};
  Learner slow(*device, shared, vectors, 1);
  Learner fast(*device, shared, with_steps(rule, 3), 1);
  // The steps of `fast`, and then that of `slow`, all decay the weights that they find.
  Vectors expected = with_steps(rule, 3);
  expected.weights = vectors.weights;
  expected.gradients.push_back(vectors.gradients[0]);
  slow.step(0, [&] {
    slow.wait();
    for (std::size_t step = 0; step < 3; ++step) fast.step(step);
    fast.wait();
  });
  slow.wait();
  CHECK(fast.staleness() == 0);
  CHECK(slow.staleness() == 3);
  CHECK(slow.vectors().weights == vectors.weights);  // its copy
  expected.run(false);
  CHECK(weights == expected.weights);
}

TEST_CASE("a step on shared weights with an element that is not finite is refused as a whole") {
  const auto device = engine::open_device(kCpu);
  for (const float bad : {kNaN, kInfinity, -1e30F}) {
    Vectors vectors = with_steps(Sgd{.momentum = 0.9F}, 1);
    vectors.gradients[0][600] = bad;
    Floats weights = vectors.weights;
    SharedWeights shared{weights.data()};
    Learner learner(*device, shared, vectors, 1);
    learner.step(0);
    learner.wait();
    CHECK(learner.vectors().non_finite == 1);
    CHECK(weights == vectors.weights);
    CHECK(std::ranges::count(learner.vectors().state[0], 0.0F) == kElements);
    CHECK(shared.steps == 0);
    CHECK(learner.staleness() == 0);
  }
}

// ThreadSanitizer sees this test, too.
TEST_CASE("learners that write shared weights at once lose changes, not numbers") {
  constexpr std::size_t kLearners = 3;
  constexpr std::size_t kSteps = 200;
  const auto device = engine::open_device(kCpu);
  Vectors vectors = with_steps(Sgd{}, 0);
  vectors.gradients.assign(kSteps, Floats(kElements, -1.0F));
  vectors.ranges = {{0, kElements, 1.0F, 1.0F}};
  vectors.step.learning_rate = 1.0F;  // each step adds 1
  Floats weights(kElements, 0.0F);
  SharedWeights shared{weights.data()};
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t j = 0; j < kLearners; ++j) {
    learners.push_back(std::make_unique<Learner>(*device, shared, vectors, 1));
  }
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (const auto& learner : learners) learner->step(step);
  }
  for (const auto& learner : learners) learner->wait();
  CHECK(shared.steps == kLearners * kSteps);
  for (const float weight : weights) {
    if (weight != static_cast<float>(static_cast<int>(weight)) || weight < 1.0F || weight > kLearners * kSteps) {
      FAIL("a weight is " << weight);
    }
  }
  for (const auto& learner : learners) {
    CHECK(std::ranges::all_of(learner->vectors().weights,
                              [](float weight) { return weight >= 0.0F && weight <= kLearners * kSteps; }));
    CHECK(learner->staleness() >= 0);
    CHECK(learner->staleness() < static_cast<std::int64_t>(kLearners * kSteps));
  }
}

}  // namespace
}  // namespace arbalest::tests
