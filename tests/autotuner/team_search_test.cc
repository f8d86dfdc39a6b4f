#include "autotuner/team_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include "autotuner/devices_tuner.h"
#include "tests/support/catch.h"

namespace arbalest::autotuner {
namespace {

constexpr int kMost = 32;

// Seconds of a round on a GPU: launches of all streams follow each other, kernels share the device, and within a stream
// kernels wait for each other, as do calls that take one learner at a time.
struct Gpu {
  double launches = 0.0;  // of a stream
  double kernels = 0.0;   // of a learner
  double latency = 0.0;   // of a stream
  double calls = 0.0;     // of a learner

  double rate(const Configuration& c) const {
    const double streams = 1.0 * c.learners / c.team;
    return c.learners / std::max({launches * streams, kernels * c.learners, latency + calls * c.team});
  }
  double best() const {
    double best = 0.0;
    for (int team = 1; team <= kMost; team *= 2) {
      for (int learners = team; learners <= kMost; learners += team) best = std::max(best, rate({learners, 1, team}));
    }
    return best;
  }
};

const Gpu kBoundByLaunches = {.launches = 1.0, .kernels = 0.05, .latency = 1.0, .calls = 0.01};
const Gpu kBoundByCalls = {.launches = 0.05, .kernels = 0.1, .latency = 0.1, .calls = 0.4};
const Gpu kBetween = {.launches = 0.2, .kernels = 0.02, .latency = 0.5, .calls = 0.1};

DevicesTuner tuner_with(const TeamOptions& teams, const std::vector<int>& guess = {}) {
  return {{}, {{1, all_counts({1, kMost})}}, guess, Extent::kEverywhere, teams};
}

struct Played {
  std::vector<Configuration> tried;  // what the run changed to
  std::vector<std::string> reasons;
};

// Runs until all searches have ended. `does_not_fit`: what the run cannot change to.
Played play(DevicesTuner& tuner, const Gpu& gpu, std::uint64_t seed = 1,
            const std::function<bool(const Configuration& from, const Configuration& to)>& does_not_fit = {}) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(1.0, 0.01);
  Played played;
  for (int window = 0; window < 3000 && tuner.searching(); ++window) {
    const Configuration before = tuner.present().front();
    CHECK(before.learners % before.team == 0);
    CHECK(before.learners <= kMost);
    auto decision = tuner.add(1'000'000, std::llround(1e6 * gpu.rate(before) * noise(random)), 1.0);
    while (decision) {
      CHECK(decision->to == tuner.present());
      CHECK(decision->done == !tuner.searching());
      CHECK((decision->step.action == Action::kKeep) == (decision->to.front() == decision->step.from));
      played.reasons.push_back(decision->step.reason);
      const Configuration to = decision->to.front();
      if (to == before) break;
      if (does_not_fit && does_not_fit(before, to)) {
        decision = tuner.out_of_memory();
        continue;
      }
      played.tried.push_back(to);
      break;
    }
  }
  CHECK_FALSE(tuner.searching());
  return played;
}

bool has_team(const Configuration& c) { return c.team > 1; }

}  // namespace

TEST_CASE("team search: learners and teams grow together where launches bound a step") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost});
    const Played played = play(tuner, kBoundByLaunches, seed);
    const Configuration chosen = tuner.present().front();
    CHECK(chosen.team >= 16);
    CHECK(kBoundByLaunches.rate(chosen) >= 0.95 * kBoundByLaunches.best());
    CHECK(kBoundByLaunches.rate(chosen) >= 10.0 * kBoundByLaunches.rate({kMost, 1, 1}));
    // The first search, that for the teams and the last one, each with a choice.
    CHECK(std::ssize(played.tried) <= 2 * (probe_limit(all_counts({1, kMost})) + 1) + TeamSearch::kMostProbes + 1);
  }
}

TEST_CASE("team search: a size between is found, and streams are added") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost});
    play(tuner, kBetween, seed);
    CHECK(kBetween.rate(tuner.present().front()) >= 0.95 * kBetween.best());
    CHECK(tuner.present().front().team > 1);
    CHECK(tuner.present().front().team < tuner.present().front().learners);
  }
}

TEST_CASE("team search: a size that is not surely better changes nothing") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    DevicesTuner alone({}, {{1, all_counts({1, kMost})}});
    const Played before = play(alone, kBoundByCalls, seed);
    CHECK(std::ranges::none_of(before.tried, has_team));
    DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost});
    const Played played = play(tuner, kBoundByCalls, seed);
    CHECK(tuner.present() == alone.present());
    REQUIRE(played.tried.size() > before.tried.size());  // all that a search without teams tries, and then teams
    CHECK(std::ranges::equal(before.tried, std::span(played.tried).first(before.tried.size())));
    CHECK(std::ssize(played.tried) <= std::ssize(before.tried) + TeamSearch::kMostProbes + 1);
    CHECK_THAT(played.reasons.back(), ContainsSubstring("and no other size of teams surely 3 % more: no change"));
  }
}

TEST_CASE("team search: the chosen number is watched again after a search that changed nothing") {
  DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost});
  play(tuner, kBoundByCalls);
  const Configuration chosen = tuner.present().front();
  const Gpu faster = {
      .launches = 0.5, .kernels = 0.01, .latency = 0.5, .calls = 0.05};  // from now on larger teams pay off
  std::optional<DevicesDecision> decision;
  for (int window = 0; window < 2000 && !has_team(tuner.present().front()); ++window) {
    const Configuration present = tuner.present().front();
    decision = tuner.add(1'000'000, std::llround(1e6 * faster.rate(present)), 1.0);
    if (window < 10) CHECK_FALSE(decision);
  }
  play(tuner, faster);
  CHECK(faster.rate(tuner.present().front()) > 2.0 * faster.rate(chosen));
}

TEST_CASE("team search: a run goes on with the size that it had") {
  DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost, .guess = 16}, {17});
  CHECK(tuner.present() == std::vector<Configuration>{{16, 1, 16}});
  play(tuner, kBoundByLaunches);
  CHECK(tuner.present().front().team >= 16);
  // No number can be divided into such teams.
  DevicesTuner few({}, {{1, all_counts({1, 3})}}, {3}, Extent::kAround, TeamOptions{.most_at_once = 6, .guess = 4});
  CHECK(few.present() == std::vector<Configuration>{{3, 1, 1}});
}

TEST_CASE("team search: no more learners coexist than memory allows") {
  constexpr int kAtOnce = 20;
  DevicesTuner tuner = tuner_with({.most_at_once = kAtOnce});
  Configuration before = tuner.present().front();
  int changes = 0;
  const Played played = play(tuner, kBoundByLaunches, 1, [&](const Configuration& from, const Configuration& to) {
    before = from;
    if (from.team != to.team) CHECK(from.learners + to.learners <= kAtOnce);
    changes += from.team != to.team ? 1 : 0;
    return false;
  });
  CHECK(changes > 0);
  CHECK(std::ranges::any_of(played.tried, has_team));
}

TEST_CASE("team search: teams that do not fit are left out, and the run stays with what trains") {
  // Any change to larger teams fails.
  DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost});
  const Played none =
      play(tuner, kBoundByLaunches, 1, [](const Configuration&, const Configuration& to) { return has_team(to); });
  CHECK(std::ranges::none_of(none.tried, has_team));
  CHECK(tuner.present().front().team == 1);
  CHECK(std::ranges::any_of(none.reasons, [](const std::string& reason) {
    return reason.find(" in teams of 2 do not fit in memory: ") != std::string::npos;
  }));
  // So do those with more than 8 learners.
  DevicesTuner bounded = tuner_with({.most_at_once = 2 * kMost});
  play(bounded, kBoundByLaunches, 1, [](const Configuration&, const Configuration& to) { return to.learners > 8; });
  CHECK(bounded.present() == std::vector<Configuration>{{8, 1, 8}});
}

TEST_CASE("team search: if the way back to the best does not fit, the run stays where it is") {
  const TunerOptions options;
  TeamSearch search(options, {.most_learners = 2, .most_at_once = 4}, {{2, 1, 1}, 100e6, 0.01, 9});
  REQUIRE(search.has_work());
  CHECK(search.begin().to == Configuration{2, 1, 2});
  std::optional<Decision> decision;
  while (!decision) decision = search.add(1'000'000, 50'000'000, 1.0, {});
  CHECK(decision->done);
  CHECK(decision->to == Configuration{2, 1, 1});
  CHECK(decision->action == Action::kShrink);
  CHECK_FALSE(search.has_changed());
  const Decision stays = search.out_of_memory();
  CHECK(stays.done);
  CHECK(stays.to == Configuration{2, 1, 2});
  CHECK(search.has_changed());
}

TEST_CASE("team search: goodput counts what a round of more learners is worth") {
  // Twice the learners bring twice the examples, but are worth little more.
  const Efficiency efficiency(64.0, 0.0, 64.0);
  const auto chosen = [&](bool weighs) {
    DevicesTuner tuner = tuner_with({.most_at_once = 2 * kMost});
    if (weighs) tuner.set_efficiency(efficiency);
    play(tuner, kBoundByLaunches);
    return tuner.present().front();
  };
  const Configuration most = chosen(false);
  const Configuration best = chosen(true);
  const Objective objective(efficiency, 1, 0);
  CHECK(objective.goodput(best, kBoundByLaunches.rate(best)) >= objective.goodput(most, kBoundByLaunches.rate(most)));
  CHECK(best.learners < most.learners);
}

TEST_CASE("team search: devices of several kinds have no size in common") {
  const TeamOptions teams{.most_at_once = 8};
  CHECK_THROWS_AS(DevicesTuner({}, {{1, all_counts({1, 4})}, {1, all_counts({1, 4})}}, {}, Extent::kEverywhere, teams),
                  std::invalid_argument);
}

}  // namespace arbalest::autotuner
