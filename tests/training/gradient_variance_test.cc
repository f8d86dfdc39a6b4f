// The variance of the learners' gradients, measured while a run trains, compared with gradients computed in double
// precision.
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/latch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {
namespace {

struct Expected {
  double square_mean = 0.0;
  double mean_square = 0.0;
};

Expected spread_of(const std::vector<std::vector<double>>& gradients) {
  Expected expected;
  const auto k = static_cast<double>(gradients.size());
  for (std::size_t i = 0; i < gradients.front().size(); ++i) {
    double sum = 0.0;
    for (const auto& gradient : gradients) {
      sum += gradient[i];
      expected.square_mean += gradient[i] * gradient[i] / k;
    }
    expected.mean_square += sum * sum / (k * k);
  }
  return expected;
}

RigOptions measured(sma::Scheme scheme, std::vector<int> learners) {
  RigOptions options;
  options.synchronization = sma::defaults_of(scheme);
  options.synchronization.period = 1;
  options.learners = std::move(learners);
  options.most_learners = 8;
  options.measures_gradients = true;
  return options;
}

void check(const scheduler::Progress& progress, const Expected& expected) {
  CHECK(progress.gradient_samples == 1);
  CHECK(progress.gradient_square_mean == Approx(expected.square_mean).epsilon(1e-4));
  CHECK(progress.mean_gradient_square == Approx(expected.mean_square).epsilon(1e-4));
}

TEST_CASE("the first iteration of several learners measures their gradients at the first weights", "[training]") {
  const auto scheme = GENERATE(sma::Scheme::kSma, sma::Scheme::kSSgd, sma::Scheme::kLocalSgd);
  const int learners = GENERATE(2, 5);
  CAPTURE(static_cast<int>(scheme), learners);
  TrainingRig rig(measured(scheme, {learners}));
  SoftmaxRegression regression(rig);
  const std::vector<double> initial = flatten(rig.scheduler().snapshot());
  std::vector<std::vector<double>> gradients;
  for (int j = 0; j < learners; ++j) {
    gradients.push_back(regression.gradient()(static_cast<std::uint64_t>(j), initial));
  }
  check(rig.run(1), spread_of(gradients));
  CHECK(rig.run(3).gradient_samples == 0);
  CHECK(rig.run(1).gradient_samples == 1);  // every fourth iteration is measured
}

TEST_CASE("one learner's successive gradients are measured in pairs", "[training]") {
  RigOptions options = measured(sma::Scheme::kSma, {1});
  options.learning_rate.base = 1e-6;  // the weights hardly move
  TrainingRig rig(options);
  SoftmaxRegression regression(rig);
  const std::vector<double> initial = flatten(rig.scheduler().snapshot());
  CHECK(rig.run(1).gradient_samples == 0);
  check(rig.run(1), spread_of({regression.gradient()(0, initial), regression.gradient()(1, initial)}));
}

TEST_CASE("no gradient of one learner is in two pairs", "[training]") {
  RigOptions options = measured(sma::Scheme::kSma, {1});
  options.learning_rate.base = 1e-6;  // the weights hardly move
  TrainingRig rig(options);
  SoftmaxRegression regression(rig);
  const std::vector<double> initial = flatten(rig.scheduler().snapshot());
  CHECK(rig.run(2).gradient_samples == 1);
  CHECK(rig.run(3).gradient_samples == 0);  // two of four iterations are measured, and the fifth begins a pair
  check(rig.run(1), spread_of({regression.gradient()(4, initial), regression.gradient()(5, initial)}));
}

// Returns whether learners start their next gradient while the averaging stream, held at the task `held`, still reads
// the previous one. There is no averaging that would order the streams.
bool gradient_overtakes_measurement(int learners, const char* held, const std::set<std::string>& dropped) {
  RigOptions options = measured(sma::Scheme::kLookahead, {learners});
  options.synchronization.period = 100;
  Latch latch;
  options.observer = &latch;
  latch.hold(held);
  latch.drop_waits(dropped);
  TrainingRig rig(options);
  rig.scheduler().advance(rig.ring(), 2);
  CHECK(latch.reaches("update", learners, std::chrono::seconds(60)));
  const auto patience = dropped.empty() ? std::chrono::milliseconds(300) : std::chrono::milliseconds(60000);
  const bool overtakes = latch.reaches("gradient", learners + 1, patience);
  latch.release();
  return overtakes;
}

TEST_CASE("the next gradient waits for the previous one's measurement, and only because of its event",
          "[training][overlap]") {
  for (const int learners : {1, 2}) {
    CAPTURE(learners);
    const char* held = learners == 1 ? "keep gradient" : "gradient variance";
    CHECK_FALSE(gradient_overtakes_measurement(learners, held, {}));
    if (kSanitized) continue;  // a data race, on purpose
    CHECK(gradient_overtakes_measurement(learners, held, {"wait for the gradients to be measured"}));
  }
}

TEST_CASE("measuring waits for the gradients, and only because of their events", "[training][overlap]") {
  const auto measures_early = [](const std::set<std::string>& dropped) {
    RigOptions options = measured(sma::Scheme::kLookahead, {2});
    options.synchronization.period = 100;
    Latch latch;
    options.observer = &latch;
    latch.hold("gradient");
    latch.drop_waits(dropped);
    TrainingRig rig(options);
    rig.scheduler().advance(rig.ring(), 1);
    const auto patience = dropped.empty() ? std::chrono::milliseconds(300) : std::chrono::milliseconds(60000);
    const bool early = latch.reaches("gradient variance", 1, patience);
    latch.release();
    return early;
  };
  CHECK_FALSE(measures_early({}));
  if (!kSanitized) CHECK(measures_early({"wait for gradients to measure"}));
}

TEST_CASE("gradients are measured on each of two devices and reported over all learners", "[training]") {
  const auto devices = two_devices(engine::host::allowed_cores());
  if (devices.empty()) skip_test("needs two cores");
  RigOptions options = measured(sma::Scheme::kSSgd, {2, 2});
  options.devices = devices;
  TrainingRig rig(options);
  SoftmaxRegression regression(rig);
  const std::vector<double> initial = flatten(rig.scheduler().snapshot());
  double signal = 0.0;
  double variance = 0.0;
  for (const std::uint64_t first : {0U, 2U}) {  // learners 0 and 1, then 2 and 3
    const Expected pair = spread_of({regression.gradient()(first, initial), regression.gradient()(first + 1, initial)});
    variance += (pair.square_mean - pair.mean_square) * 2.0 / 2.0;
    signal += (pair.mean_square - (pair.square_mean - pair.mean_square)) / 2.0;
  }
  check(rig.run(1), {signal + variance, signal + variance / 4.0});
}

TEST_CASE("measuring changes no bit of the training", "[training]") {
  RigOptions options = measured(sma::Scheme::kSma, {3});
  TrainingRig with(options);
  options.measures_gradients = false;
  TrainingRig without(options);
  with.run(20);
  without.run(20);
  CHECK(flatten(with.scheduler().snapshot()) == flatten(without.scheduler().snapshot()));
}

TEST_CASE("the mean loss of the learners' own weights equals the loss of models with these weights", "[training]") {
  RigOptions options;
  options.synchronization = sma::defaults_of(sma::Scheme::kSwap);
  options.learners = {3};
  options.evaluates_replicas = true;
  TrainingRig rig(options);
  rig.run(9);
  const double found = rig.scheduler().evaluate_replicas(rig.test_ring());
  double sum = 0.0;
  for (const auto& learner : rig.pools().front()->learners()) {
    const learners::LearnerPool& pool = *rig.pools().front();
    RigOptions alone;
    TrainingRig other(alone);
    other.scheduler().load(pool.training_plan().parameters().to_canonical(pool.device(), learner->weights()));
    sum += other.scheduler().evaluate(other.test_ring()).loss();
  }
  CHECK(found == Approx(sum / 3.0).epsilon(1e-6));
  CHECK(rig.scheduler().evaluate(rig.test_ring()).loss() < found);  // the loss is convex, so the mean model is better
}

TEST_CASE("Polyak's mean is the plain mean of the models since its epoch", "[training]") {
  RigOptions options;
  options.learners = {2};
  options.examples = 96;  // 24 mini-batches: 12 rounds an epoch
  TrainingRig plain(options);
  options.mean_from_epoch = 1.0;
  TrainingRig averaged(options);
  std::vector<double> sum;
  for (int round = 1; round <= 30; ++round) {
    plain.run(1);
    averaged.run(1);
    const std::vector<double> now = flatten(plain.scheduler().snapshot());
    if (round <= 12) {
      if (round < 12) CHECK(flatten(averaged.scheduler().snapshot()) == now);
      continue;
    }
    if (sum.empty()) sum.assign(now.size(), 0.0);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += now[i];
  }
  for (double& value : sum) value /= 18.0;
  CHECK(relative_distance(flatten(averaged.scheduler().snapshot()), sum) < 1e-5);
}

}  // namespace
}  // namespace arbalest::tests
