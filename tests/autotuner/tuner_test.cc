#include "autotuner/tuner.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/autotuner/simulated_run.h"
#include "tests/support/catch.h"

namespace arbalest::autotuner {
namespace {

// A device without noise and up to 16 learners, of which 8 are the best number.
tests::SimulatedDevice tent_of_16() {
  return {.space = all_counts({1, 16}),
          .throughput = [](int learners, int) { return learners <= 8 ? learners / 8.0 : 1.0 - 0.06 * (learners - 8); }};
}

// Feeds windows of one second with `examples` examples until there is a decision.
std::optional<Decision> feed(Tuner& tuner, std::int64_t examples, int windows) {
  for (int i = 0; i < windows; ++i) {
    if (const auto decision = tuner.add(4 * tuner.present().learners, examples, 1.0)) return decision;
  }
  return std::nullopt;
}

std::vector<int> tried(const tests::SimulatedRun& run) {
  std::vector<int> counts;
  for (const Decision& decision : run.decisions) {
    counts.push_back(decision.to.learners);
    if (decision.done) break;
  }
  return counts;
}

}  // namespace

TEST_CASE("tuner: doubles the learners, skips one learner, and returns to the best") {
  const tests::SimulatedDevice device = tent_of_16();
  const tests::SimulatedRun run = tests::simulate(device, 1, 100);
  CHECK(run.chosen == 8);
  // The search begins at 2. No number between 8 and 16 can be better, because 16 are much worse.
  CHECK(tried(run) == std::vector{4, 8, 16, 8});
  // The search takes 9 windows to learn the noise, 5 for each other number, and two to settle after each resize.
  CHECK(run.windows_to_choice == 9 + 3 * 5 + 4 * 2);
}

TEST_CASE("tuner: a decision has its reason and its numbers") {
  const tests::SimulatedRun run = tests::simulate(tent_of_16(), 1, 100);
  const Decision& probe = run.decisions.at(1);
  CHECK(probe.action == Action::kGrow);
  CHECK(probe.from.learners == 4);
  CHECK(probe.to.learners == 8);
  CHECK_FALSE(probe.done);
  CHECK(probe.reason == "4 learners reached 500000 examples/s, the most so far: trying the next octave, 8 learners");
  CHECK(probe.evidence.rate == 500'000.0);
  CHECK(probe.evidence.windows == 5);
  CHECK(probe.evidence.best_learners == 4);
  CHECK(probe.evidence.best_rate == 500'000.0);
  CHECK(probe.evidence.probes == 3);
  CHECK(probe.evidence.probe_limit == 6);
  CHECK(probe.evidence.measured_windows == 14);
  const Decision& choice = run.decisions.back();
  CHECK(choice.action == Action::kShrink);
  CHECK(choice.done);
  CHECK(choice.to.learners == 8);
  CHECK(choice.evidence.best_rate == 1'000'000.0);
  CHECK(choice.reason ==
        "8 learners reached 1000000 examples/s, the most of all that were tried, and no other should be more than 3 % "
        "faster, by rates known to 0.2 %");
}

TEST_CASE("tuner: the same calls give the same decisions") {
  const tests::SimulatedDevice device = tests::draw_device(tests::Family::kNoisy, 3);
  const tests::SimulatedRun one = tests::simulate(device, 3, 3000);
  const tests::SimulatedRun other = tests::simulate(device, 3, 3000);
  REQUIRE(one.decisions.size() == other.decisions.size());
  for (std::size_t i = 0; i < one.decisions.size(); ++i) {
    CHECK(one.decisions[i].to == other.decisions[i].to);
    CHECK(one.decisions[i].reason == other.decisions[i].reason);
  }
}

TEST_CASE("tuner: an earlier search's choice is compared with the neighboring octaves and kept") {
  const tests::SimulatedRun run = tests::simulate(tent_of_16(), 1, 100, {}, {8, Extent::kAround});
  CHECK(run.chosen == 8);
  CHECK(run.learners.front() == 8);
  CHECK(tried(run) == std::vector{4, 16, 8});
  CHECK(run.decisions.back().reason ==
        "8 learners reached 1000000 examples/s, the most of all that were tried, and no other beside it should be "
        "more than 3 % faster, by rates known to 0.1 %");
  CHECK(Tuner({}, all_counts({2, 6}), 40).first().learners == 6);  // the nearest
}

TEST_CASE("tuner: any other guess is only the start of the search") {
  // A plateau at 4 and 8 learners hides the second peak at 32 from a search that only tries neighbors.
  const tests::SimulatedDevice device{.space = all_counts({1, 32}), .throughput = [](int learners, int) {
                                        return learners <= 4 ? 0.5 : learners <= 16 ? 0.45 : learners / 32.0;
                                      }};
  const tests::SimulatedRun run = tests::simulate(device, 1, 200, {}, {4, Extent::kEverywhere});
  CHECK(run.learners.front() == 4);
  CHECK(tried(run) == std::vector{8, 16, 32, 2, 1, 32});
  CHECK(run.decisions.at(3).reason ==
        "32 learners reached 1000000 examples/s, the most so far: trying 2 learners, the octave below all so far");
  CHECK(run.decisions.at(4).reason ==
        "2 learners reached 500000 examples/s, 32 learners 1000000: 4 learners are hardly faster than 2 learners, so "
        "trying 1 learner");
  CHECK(tests::simulate(device, 1, 200, {}, {4, Extent::kAround}).chosen <= 4);
}

TEST_CASE("tuner: on four cores the search takes few windows, with and without the cores as a guess") {
  const tests::SimulatedDevice device{.space = counts_of_cores({1, 4}, 4),
                                      .throughput = [](int learners, int) { return learners / 4.0; }};
  const tests::SimulatedRun guessed = tests::simulate(device, 1, 100, {}, {4});
  CHECK(guessed.chosen == 4);
  CHECK(tried(guessed) == std::vector{2, 4});
  CHECK(guessed.lost_windows <= 6.0);
  const tests::SimulatedRun unguessed = tests::simulate(device, 1, 100);
  CHECK(unguessed.chosen == 4);
  CHECK(tried(unguessed) == std::vector{4, 4});  // 1 learner is not worth a probe
  CHECK(unguessed.lost_windows <= 8.0);
}

TEST_CASE("tuner: a single candidate is chosen without probes and never changes") {
  const tests::SimulatedDevice device{.space = all_counts({3, 3}),
                                      .throughput = [](int, int window) { return window < 500 ? 1.0 : 0.2; }};
  const tests::SimulatedRun run = tests::simulate(device, 1, 3000);
  CHECK(run.chosen == 3);
  CHECK(run.decisions.size() == 1);
  CHECK(run.decisions.front().action == Action::kKeep);
}

TEST_CASE("tuner: a short slowdown is ignored, a lasting one leads to a new choice") {
  for (const int slump : {20, 600}) {
    INFO("a slump of " << slump << " windows");
    const tests::SimulatedDevice device{.space = all_counts({1, 16}), .throughput = [=](int learners, int window) {
                                          const bool slow = window >= 200 && window < 200 + slump && learners > 4;
                                          return std::min(learners, 8) / 8.0 * (slow ? 0.4 : 1.0);
                                        }};
    const tests::SimulatedRun run = tests::simulate(device, 1, 450);
    CHECK(run.chosen == 8);
    CHECK(run.learners.back() == (slump == 20 ? 8 : 4));
    CHECK(run.learners.at(290) == (slump == 20 ? 8 : 4));  // at once
    if (slump == 20) CHECK(tests::resizes(run, 100, 450) == 0);
  }
}

TEST_CASE("tuner: a small change leads to a new search 300 windows after the last one, whenever it came") {
  const auto simulate = [](int arrives) {
    const tests::SimulatedDevice device{.space = all_counts({1, 16}), .throughput = [=](int learners, int window) {
                                          if (learners <= 4) return 0.85 * learners / 4;
                                          return window < arrives ? 1.0 : 0.8;
                                        }};
    return tests::simulate(device, 1, 600);
  };
  const int chosen_at = simulate(600).windows_to_choice;
  for (const int arrives : {chosen_at, chosen_at + 3, chosen_at + 150}) {
    CAPTURE(arrives);
    const tests::SimulatedRun run = simulate(arrives);
    REQUIRE(run.chosen > 4);
    CHECK(tests::resizes(run, chosen_at + 1, chosen_at + 300) == 0);
    CHECK(run.learners.at(static_cast<std::size_t>(chosen_at + 400)) == 4);
  }
}

TEST_CASE("tuner: out of memory returns to the last number that fit, and the search continues below") {
  Tuner tuner({}, all_counts({1, 16}));
  CHECK(feed(tuner, 2000, 20)->to.learners == 4);
  CHECK(feed(tuner, 4000, 20)->to.learners == 8);
  const Decision back = tuner.out_of_memory();
  CHECK(back.action == Action::kShrink);
  CHECK(back.from.learners == 8);
  CHECK(back.to.learners == 4);
  CHECK(tuner.present().learners == 4);
  CHECK(tuner.space().back().learners == 7);
  CHECK(back.reason == "8 learners do not fit in memory: back to 4 learners, and no more than 7 learners from now on");
  const auto next = feed(tuner, 4000, 20);
  REQUIRE(next);
  CHECK(next->to.learners == 6);  // halfway to the limit
  CHECK(tuner.probes() == 4);     // the failed probe counts
}

TEST_CASE("tuner: a choice that no longer fits in memory is replaced by the next best") {
  Tuner tuner({}, all_counts({1, 8}), 4, Extent::kAround);
  CHECK(feed(tuner, 4000, 20)->to.learners == 2);
  CHECK(feed(tuner, 2000, 20)->to.learners == 8);
  std::optional<Decision> decision = feed(tuner, 3000, 20);
  while (!decision->done) decision = feed(tuner, 3000, 20);
  CHECK(decision->to.learners == 4);
  const Decision back = tuner.out_of_memory();  // fewer learners, but new ones, with two threads each for example
  CHECK(back.action == Action::kGrow);
  CHECK(back.to == decision->from);
  CHECK(back.reason ==
        fmt::format("4 learners do not fit in memory: back to {} learners, as both are needed for a while",
                    decision->from.learners));
  CHECK(tuner.space().back().learners == 8);
  CHECK(tuner.curve().find(4) == nullptr);
  CHECK(tuner.curve().find(8) != nullptr);
  const auto rate = [](int learners) { return learners == 8 ? 3000.0 : 2500.0; };
  for (int i = 0; i < 3000; ++i) {
    const auto next = tuner.add(std::int64_t{4} * 8, std::llround(rate(tuner.present().learners)), 1.0);
    if (next) CHECK(next->to.learners != 4);
  }
  CHECK_FALSE(tuner.searching());
  CHECK(tuner.present().learners == 8);
}

TEST_CASE("tuner: out of memory on the way back to the best leads to a choice among the rest") {
  Tuner tuner({}, all_counts({1, 4}), 4);
  CHECK(feed(tuner, 4000, 20)->to.learners == 2);
  std::optional<Decision> decision = feed(tuner, 1000, 20);
  REQUIRE(decision);
  while (decision->to.learners != 4) decision = feed(tuner, 1000, 20);
  CHECK(decision->done);
  const Decision back = tuner.out_of_memory();
  CHECK(back.to.learners < 4);
  CHECK(tuner.searching());
  decision = feed(tuner, 1000, 40);
  while (!decision->done) decision = feed(tuner, 1000, 40);
  CHECK(decision->to.learners < 4);
  CHECK(tuner.curve().find(4) == nullptr);
}

TEST_CASE("tuner: an invalid space is refused") {
  CHECK_THROWS_AS(Tuner({}, {}), std::invalid_argument);
  CHECK_THROWS_AS(Tuner({}, {{2, 1}, {2, 1}}), std::invalid_argument);
  CHECK_THROWS_AS(Tuner({}, {{4, 1}, {2, 1}}), std::invalid_argument);
  CHECK_THROWS_AS(Tuner({}, {{0, 1}, {2, 1}}), std::invalid_argument);
  Tuner tuner({}, all_counts({1, 4}));
  CHECK_THROWS_AS(tuner.out_of_memory(), std::logic_error);
}

}  // namespace arbalest::autotuner
