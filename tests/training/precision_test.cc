// Training in TF32 and BF16 is close to FP32 and repeatable, and the low-precision copy of the weights is always up to
// date. Runs on the CPU, on the stand-in of CUDA's libraries and on a real GPU.
#include <algorithm>
#include <cstdint>

#include "engine/elementwise/bfloat16.h"
#include "tests/support/amx.h"
#include "tests/support/bfloat16.h"
#include "tests/support/device_memory.h"
#include "tests/support/small_training.h"
#include "tests/support/test_device.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

using engine::Precision;

constexpr const char* kDevice = ARBALEST_TEST_DEVICE;

RigOptions options_in(Precision precision, int learners) {
  RigOptions options = options_on({kDevice}, {learners});
  options.precision = precision;
  return options;
}

// Allowed relative distance of weights and losses from a training in FP32.
double tolerance_of(Precision precision) { return precision == Precision::kBFloat16 ? 5e-2 : 5e-3; }

// Mean losses of a few steps of LeNet on synthetic digits.
std::vector<double> lenet_losses(Precision precision) {
  RigOptions options;
  options.devices = {kDevice};
  options.precision = precision;
  options.layers = arbalest::tests::lenet();
  options.image = {1, 28, 28};
  options.classes = 10;
  options.batch = 16;
  options.examples = 160;
  options.learning_rate.base = 0.05;
  TrainingRig rig(options);
  std::vector<double> losses;
  for (int step = 0; step < 12; ++step) {
    const scheduler::Progress progress = rig.run(1);
    losses.push_back(progress.sums.loss() / static_cast<double>(progress.examples));
  }
  return losses;
}

std::vector<std::uint16_t> bits_there(engine::Device& device, const engine::BFloat16* rounded, std::size_t elements) {
  return download<std::uint16_t>(device, rounded, elements);
}

std::vector<std::uint16_t> rounded_there(engine::Device& device, const float* weights, std::size_t elements) {
  std::vector<std::uint16_t> bits;
  for (const float weight : download<float>(device, weights, elements)) {
    bits.push_back(engine::elementwise::to_bfloat16(weight).bits);
  }
  return bits;
}

// Checks that every low-precision copy matches its weights.
void check_copies(const TrainingRig& rig, const char* when) {
  CAPTURE(when);
  const learners::LearnerPool& pool = *rig.pools().front();
  const auto elements = static_cast<std::size_t>(pool.training_plan().parameters().elements());
  for (const auto& learner : pool.learners()) {
    learner->stream().drain();
    REQUIRE(learner->rounded_weights() != nullptr);
    CHECK(bits_there(pool.device(), learner->rounded_weights(), elements) ==
          rounded_there(pool.device(), learner->weights(), elements));
  }
}

}  // namespace

TEST_CASE("training in TF32 and BF16 is close to FP32", "[training][precision]") {
  const auto precision = GENERATE(from_range(precisions_beside_float32(kDevice)));
  const int learners = GENERATE(1, 3);
  CAPTURE(to_string(precision), learners);
  use_device_with_bfloat16(kDevice);
  const Trained exact = train(options_in(Precision::kFloat32, learners));
  const Trained close = train(options_in(precision, learners));
  const double tolerance = tolerance_of(precision);
  CHECK(distance(close.weights, exact.weights) < tolerance);
  CHECK(std::abs(close.loss - exact.loss) < tolerance * exact.loss);
  CHECK(std::abs(close.evaluation.loss() - exact.evaluation.loss()) < tolerance * exact.evaluation.loss());
  CHECK(close.evaluation.examples == exact.evaluation.examples);
}

TEST_CASE("the losses of LeNet fall in TF32 and BF16 as they do in FP32", "[training][precision]") {
  use_device_with_bfloat16(kDevice);
  const std::vector<double> exact = lenet_losses(Precision::kFloat32);
  REQUIRE(exact.back() < 0.9 * exact.front());
  for (const Precision precision : precisions_beside_float32(kDevice)) {
    const std::vector<double> close = lenet_losses(precision);
    for (std::size_t step = 0; step < exact.size(); ++step) {
      CAPTURE(to_string(precision), step);
      CHECK(std::abs(close[step] - exact[step]) < tolerance_of(precision) * exact[step]);
    }
  }
}

TEST_CASE("training in TF32 and BF16 is repeatable, with and without graphs", "[training][precision][repeatability]") {
  const auto precision = GENERATE(from_range(precisions_beside_float32(kDevice)));
  CAPTURE(to_string(precision));
  use_device_with_bfloat16(kDevice);
  RigOptions options = options_in(precision, 3);
  const Trained expected = train(options);
  check_equal(train(options), expected);
  options.graphs = false;
  check_equal(train(options), expected);
}

TEST_CASE("in BF16, data on the device and data from a ring train to the same bytes", "[training][precision]") {
  use_device_with_bfloat16(kDevice);
  RigOptions options = options_in(Precision::kBFloat16, 2);
  options.input = RigInput::kResident;
  const Trained cached = train(options);
  options.input = RigInput::kBytes;
  check_equal(train(options), cached);
}

TEST_CASE("the low-precision copy of the weights follows them", "[training][precision]") {
  const int learners = GENERATE(1, 2);
  CAPTURE(learners);
  use_device_with_bfloat16(kDevice);
  TrainingRig rig(options_in(Precision::kBFloat16, learners));
  check_copies(rig, "at the start");
  rig.run(3);
  check_copies(rig, "after updates");

  const learners::LearnerPool& pool = *rig.pools().front();
  engine::Device& device = pool.device();
  const auto elements = static_cast<std::size_t>(pool.training_plan().parameters().elements());
  rig.scheduler().evaluate(rig.test_ring());
  CHECK(bits_there(device, pool.rounded_evaluation_weights(), elements) ==
        rounded_there(device, pool.evaluation_weights(), elements));

  const engine::Buffer central = upload(device, std::vector<float>(elements, 1.0F / 3.0F));
  for (const auto& learner : pool.learners()) learner->assign(central.as<float>(), {}, learners::OptimizerState::kZero);
  check_copies(rig, "after a restart");
  CHECK(download<float>(device, pool.learners()[0]->weights(), 1)[0] == 1.0F / 3.0F);

  std::vector<dataflow::NamedTensor> model = rig.scheduler().snapshot();
  for (dataflow::NamedTensor& tensor : model) std::ranges::fill(tensor.values, 0.1F);
  rig.scheduler().load(model);
  check_copies(rig, "after loading");
}

TEST_CASE("BF16 learners restart when the learning rate drops", "[training][precision]") {
  use_device_with_bfloat16(kDevice);
  RigOptions options = options_in(Precision::kBFloat16, 3);
  options.learning_rate.curve = scheduler::MultistepDrops{{{0.5, 0.1}}};
  const Trained exact = [&] {
    RigOptions of = options;
    of.precision = Precision::kFloat32;
    return train(of);
  }();
  const Trained close = train(options);
  CHECK(distance(close.weights, exact.weights) < tolerance_of(Precision::kBFloat16));
}

TEST_CASE(
    "what BF16 takes of a device's memory is what was said before, and less than FP32 where tensors outweigh weights",
    "[training][precision]") {
  use_device_with_bfloat16(kDevice);
  const auto taken = [](Precision precision) {
    RigOptions options = options_in(precision, 1);
    options.batch = 32;
    dataflow::Conv2dLayer::Options conv;
    conv.filters = 16;  // full blocks on a CPU in both precisions
    conv.window = {{3, 3}, {1, 1}};
    options.layers[0].layer = std::make_shared<dataflow::Conv2dLayer>(conv);
    const TrainingRig rig(options);
    const learners::LearnerPool& pool = *rig.pools().front();
    const auto elements = static_cast<std::size_t>(pool.training_plan().parameters().elements());
    const bool rounds = precision == Precision::kBFloat16;
    CHECK(pool.shared_bytes() == elements * (sizeof(float) + (rounds ? sizeof(engine::BFloat16) : 0)));
    CHECK((pool.learners()[0]->rounded_weights() != nullptr) == rounds);
    CHECK((pool.rounded_evaluation_weights() != nullptr) == rounds);
    return pool.training_plan().arena_bytes();
  };
  const std::size_t single = taken(Precision::kFloat32);
  // TF32 has the tensors of FP32, and algorithms whose workspaces may be smaller or larger.
  if (is_gpu(kDevice)) taken(Precision::kTensorFloat32);
  const std::size_t half = taken(Precision::kBFloat16);
  if (!has_amx()) CHECK(half < single);  // AMX's kernels take scratch memory that outweighs these small tensors
}

}  // namespace arbalest::tests
