// LeNet's first losses, compared with the same training in double precision and with recorded values.
#include <array>

#include "tests/support/catch.h"
#include "tests/support/read_example.h"
#include "tests/support/reference_lenet.h"
#include "tests/support/reference_sma.h"
#include "tests/support/training_rig.h"
#include "tests/support/zoo_layers.h"

namespace {

using namespace arbalest;
using tests::RigOptions;
using tests::TrainingRig;

constexpr int kRounds = 6;

// Mean training losses of the first rounds with one and with two learners, printed by the double-precision reference
// (run this test with -s to see them again).
constexpr std::array<double, kRounds> kOneLearner{2.3021482993, 2.2970093706, 2.2850650213,
                                                  2.2715692668, 2.3553669152, 2.3248827152};
constexpr std::array<double, kRounds> kTwoLearners{2.3100317803, 2.2910148483, 2.3357738485,
                                                   2.2930442024, 2.2753480245, 2.297512416};
// Losses of mini-batches of 16, whose examples the CPU arranges in lanes (engine/cpu/lanes/lanes.h).
constexpr std::array<double, kRounds> kSixteenExamples{2.3100317803, 2.2904136034, 2.3378113632,
                                                       2.3044063153, 2.2792650059, 2.3036756675};

void check_first_losses(int learners, std::int64_t batch, const std::array<double, kRounds>& golden) {
  RigOptions options;
  options.layers = tests::lenet();
  options.image = {1, 28, 28};
  options.classes = 10;
  options.batch = batch;
  options.learners = {learners};
  options.learning_rate.base = 0.01;
  options.synchronization.momentum = 0.5F;
  TrainingRig rig(options);

  tests::Values initial;
  for (const auto& tensor : rig.scheduler().snapshot()) {
    initial.insert(initial.end(), tensor.values.begin(), tensor.values.end());
  }
  CHECK(initial.size() == 431'080);
  tests::ReferenceSma reference{
      .learners = learners, .alpha = 1.0 / learners, .central_momentum = 0.5, .rule = options.rule};
  reference.start(initial);

  for (int round = 0; round < kRounds; ++round) {
    double loss_sum = 0.0;
    reference.round(options.learning_rate.base, [&](std::uint64_t task, const tests::Values& weights) {
      std::vector<std::int64_t> examples(static_cast<std::size_t>(options.batch));
      rig.order().indices(task, examples);
      tests::Values images;
      tests::Labels labels;
      std::array<float, 28 * 28> image{};
      for (const std::int64_t example : examples) {
        tests::read_image(rig.data(), example, {}, image.data());
        images.insert(images.end(), image.begin(), image.end());
        labels.push_back(dataflow::class_of(rig.data(), example));
      }
      tests::LossAndGradient step = tests::reference_lenet(weights, images, labels);
      loss_sum += step.loss_sum;
      return std::move(step.gradient);
    });
    const scheduler::Progress progress = rig.run(1);
    const auto examples = static_cast<double>(progress.examples);
    CAPTURE(round);
    CHECK(progress.sums.loss() / examples == Approx(loss_sum / examples).epsilon(1e-5));
    CHECK(loss_sum / examples == Approx(golden[static_cast<std::size_t>(round)]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("the first losses of LeNet with one learner", "[training]") { check_first_losses(1, 8, kOneLearner); }

TEST_CASE("the first losses of LeNet with two learners", "[training]") { check_first_losses(2, 8, kTwoLearners); }

TEST_CASE("the first losses of LeNet with mini-batches of sixteen", "[training]") {
  check_first_losses(1, 16, kSixteenExamples);
}
