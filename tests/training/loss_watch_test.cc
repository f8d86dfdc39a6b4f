// A spike of the training loss is told from noise.
#include "scheduler/replicas/loss_watch.h"

#include <vector>

#include "engine/base/error.h"
#include "scheduler/replicas/diverged.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {
namespace {

using scheduler::LossHistory;
using scheduler::LossSpike;
using scheduler::LossWatch;
using scheduler::SpikeRule;

constexpr SpikeRule kWindowsOfFour{.factor = 3.0, .window_examples = 8, .window_batches = 4};

// Adds mini-batches of two examples with these mean losses, from number `first` on. Returns the number of the one that
// completes a spike, or -1.
int spike_at(LossWatch& watch, const std::vector<double>& losses, int first = 0) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const int number = first + static_cast<int>(i);
    if (watch.add(static_cast<std::uint64_t>(number), 2, 2.0 * losses[i])) return number;
  }
  return -1;
}

std::vector<double> windows(std::vector<double> means, int batches = 4) {
  std::vector<double> losses;
  for (const double mean : means) losses.insert(losses.end(), static_cast<std::size_t>(batches), mean);
  return losses;
}

}  // namespace

TEST_CASE("two windows in a row far above the usual loss are a spike", "[divergence]") {
  const std::vector<double> falling = {2.0, 1.5, 1.2, 1.0, 0.9, 0.8, 0.7, 0.6, 0.6};
  LossWatch watch(kWindowsOfFour);
  CHECK(spike_at(watch, windows(falling)) == -1);
  CHECK(spike_at(watch, windows({2.9}), 36) == -1);  // above 3 x 0.9, but alone
  const auto spike = [&] {
    std::optional<LossSpike> found;
    for (int i = 0; i < 4; ++i) found = watch.add(static_cast<std::uint64_t>(40 + i), 2, 2.0 * 3.1);
    return found;
  }();
  REQUIRE(spike);
  CHECK(spike->loss == Approx(3.1));
  CHECK(spike->usual == Approx(0.9));  // the median of the nine windows before the rise
}

TEST_CASE("noise of single mini-batches, a window by itself and a slow rise are no spikes", "[divergence]") {
  LossWatch watch(kWindowsOfFour);
  const std::vector<double> usual(10, 1.0);
  CHECK(spike_at(watch, windows(usual)) == -1);
  CHECK(spike_at(watch, {0.5, 9.0, 0.5, 0.5, 0.5, 9.0, 0.5, 0.5}, 40) == -1);  // windows of 2.6
  CHECK(spike_at(watch, windows({5.0, 1.0, 5.0, 1.0}), 48) == -1);
  std::vector<double> rise;
  for (double loss = 1.0; loss < 40.0; loss *= 1.1) rise.push_back(loss);
  CHECK(spike_at(watch, windows(rise), 64) == -1);
}

TEST_CASE("a small loss may be a multiple of a smaller one", "[divergence]") {
  LossWatch watch(kWindowsOfFour);
  CHECK(spike_at(watch, windows({2.0})) == -1);
  CHECK(spike_at(watch, windows(std::vector<double>(9, 0.01)), 4) == -1);
  CHECK(spike_at(watch, windows({0.2, 0.3, 0.9}), 40) == -1);  // below half of the first window's 2
  CHECK(spike_at(watch, windows({1.1, 1.1}), 52) == 59);
}

TEST_CASE("nothing is judged before the first epoch has ended", "[divergence]") {
  SpikeRule rule = kWindowsOfFour;
  rule.first_batch = 60;
  LossWatch watch(rule);
  CHECK(spike_at(watch, windows({1, 1, 1, 1, 1, 1, 1, 1, 1, 50, 50, 50, 1, 1, 1})) == -1);
  CHECK(spike_at(watch, windows({1, 1, 1, 1, 1, 1}), 60) == -1);
  CHECK(spike_at(watch, windows({50, 50}), 84) == 91);
}

TEST_CASE("a window has at least its examples and its mini-batches", "[divergence]") {
  SpikeRule rule = kWindowsOfFour;
  rule.window_examples = 1000;
  LossWatch by_examples(rule);
  CHECK(spike_at(by_examples, windows(std::vector<double>(9, 1.0), 500)) == -1);
  CHECK(by_examples.history().recent.size() == 9);
  CHECK(spike_at(by_examples, windows({50, 50}, 500), 4500) == 5499);
}

TEST_CASE("a watch that goes on from a saved history decides as the one that saved it", "[divergence]") {
  std::vector<double> losses;
  for (const double value : random_values(400, 3)) losses.push_back(1.0 + 0.5 * value);
  losses.insert(losses.end(), 30, 20.0);
  LossWatch whole(kWindowsOfFour);
  const int expected = spike_at(whole, losses);
  REQUIRE(expected > 400);
  for (const std::size_t cut : {3U, 37U, 250U, 403U, 405U}) {
    LossWatch first(kWindowsOfFour);
    CHECK(spike_at(first, {losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(cut)}) == -1);
    LossWatch second(kWindowsOfFour);
    second.continue_from(first.history());
    CHECK(spike_at(second, {losses.begin() + static_cast<std::ptrdiff_t>(cut), losses.end()}, static_cast<int>(cut)) ==
          expected);
  }
}

TEST_CASE("a scheduler ends a training whose loss has a spike, and can go back to a state before it", "[divergence]") {
  RigOptions options = scheme_options({2});
  options.spike = SpikeRule{.factor = 3.0, .window_examples = 8, .window_batches = 8};
  TrainingRig expected(options);
  expected.run(60);
  const scheduler::TrainingState state = expected.scheduler().save();
  TrainingRig rig(options);
  rig.run(60);
  // Steps that are far too large make the loss rise, and it stays finite.
  rig.scheduler().lower_rate(1e4, 0);
  const auto diverge = [&] { rig.run(200); };
  try {
    diverge();
    FAIL("nobody notices");
  } catch (const scheduler::Diverged& error) {
    CHECK(error.loss() > 3.0);
    CHECK_THAT(error.what(), ContainsSubstring("the training loss rose to ") && ContainsSubstring("was usual"));
  }
  rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners, options.learners);
  rig.ring().restart(state.batches);
  rig.scheduler().lower_rate(1.0, 0);
  rig.run(25);
  expected.run(25);
  CHECK(flatten(rig.scheduler().snapshot()) == flatten(expected.scheduler().snapshot()));
}

}  // namespace arbalest::tests
