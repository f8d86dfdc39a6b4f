// A scheduler that restores the state of another one goes on to the same bytes.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/sanitized.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/small_training.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using tests::all_schemes;
using tests::RigOptions;
using tests::scheme_options;
using tests::SchemeCase;
using tests::TrainingRig;

// Every bit that a run leaves: the model, and the replicas.
struct Outcome {
  std::vector<double> model;
  std::vector<std::vector<float>> replicas;

  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(TrainingRig& rig) {
  Outcome outcome;
  outcome.model = tests::flatten(rig.scheduler().snapshot());  // waits for the learners' streams
  outcome.replicas = tests::learner_weights(rig);
  return outcome;
}

void restore(TrainingRig& rig, const scheduler::TrainingState& state, const RigOptions& options,
             const std::vector<int>& learners) {
  for (std::size_t d = 0; d < learners.size(); ++d) rig.pools()[d]->prepare(learners[d]);
  rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners, learners);
  rig.ring().restart(state.batches);
}

// All vectors of a state, each after the one before.
std::vector<std::vector<double>> vectors_of(const scheduler::TrainingState& state) {
  std::vector<std::vector<double>> vectors;
  for (const scheduler::Tensors* tensors :
       {&state.model, &state.central, &state.central_before, &state.velocity, &state.average}) {
    vectors.push_back(tests::flatten(*tensors));
  }
  for (const scheduler::LearnerState& learner : state.learners) {
    vectors.push_back(tests::flatten(learner.weights));
    for (const scheduler::Tensors& slot : learner.optimizer) vectors.push_back(tests::flatten(slot));
  }
  return vectors;
}

// Trains `iterations` without a stop, with a state saved after each of `cuts`, and in pieces: each piece is a scheduler
// of its own that goes on from the state of the one before.
void compare(const RigOptions& options, int iterations, const std::vector<int>& cuts) {
  TrainingRig whole(options);
  whole.run(iterations);
  const Outcome expected = outcome_of(whole);

  TrainingRig watched(options);
  auto pieces = std::make_unique<TrainingRig>(options);
  int done = 0;
  scheduler::TrainingState watched_state;
  for (const int cut : cuts) {
    watched.run(cut - done);
    watched_state = watched.scheduler().save(std::move(watched_state));
    pieces->run(cut - done);
    const scheduler::TrainingState state = pieces->scheduler().save();
    CHECK(vectors_of(watched_state) == vectors_of(state));
    pieces = std::make_unique<TrainingRig>(options);
    restore(*pieces, state, options, options.learners);
    CHECK(pieces->scheduler().batches() == state.batches);
    done = cut;
  }
  watched.run(iterations - done);
  pieces->run(iterations - done);
  CHECK(outcome_of(watched) == expected);
  CHECK(outcome_of(*pieces) == expected);
}

}  // namespace

TEST_CASE("a saved training goes on to the same bytes, in the middle of a round and after it", "[checkpoint]") {
  for (const auto& devices : tests::device_lists()) {
    for (const int learners : {1, 3}) {
      if (learners < static_cast<int>(devices.size())) continue;
      if (tests::kSanitized && learners == 1) continue;
      for (const SchemeCase& scheme : all_schemes()) {
        const SchemeCase of_three = scheme.with_period(3);
        CAPTURE(scheme.name, learners, devices.size());
        RigOptions options = scheme_options(tests::spread(learners, devices), devices);
        options.synchronization = of_three.options;
        compare(options, 9, tests::kSanitized ? std::vector<int>{4} : std::vector<int>{1, 5, 6});
      }
    }
  }
}

TEST_CASE("every optimizer, the moving average and drops of the learning rate are part of the state", "[checkpoint]") {
  for (const engine::UpdateRule& rule : {engine::UpdateRule(engine::Sgd{.momentum = 0.9F, .nesterov = true}),
                                         engine::UpdateRule(engine::RmsProp{}), engine::UpdateRule(engine::AdamW{})}) {
    for (const bool is_exponential : {true, false}) {
      CAPTURE(rule.index(), is_exponential);
      RigOptions options = scheme_options({2});
      options.rule = rule;
      options.learning_rate.base = 0.01;
      options.learning_rate.curve = scheduler::MultistepDrops{{{0.3, 0.5}, {1.1, 0.5}}};
      options.image = {2, 6, 6};
      options.layers = is_exponential ? tests::small_network() : tests::normalized_network();
      options.statistic_batches = is_exponential ? 0 : 3;
      if (is_exponential) {
        options.moving_average_epochs = 0.3;
      } else {
        options.mean_from_epoch = 0.2;
      }
      compare(options, 20, {2, 7, 13});
    }
  }
}

TEST_CASE("the learning rate of the last round, which scales the momentum of slow_mo, is part of the state",
          "[checkpoint]") {
  RigOptions options = scheme_options({2});
  options.synchronization = tests::slow_mo_with_momentum().with_period(3).options;
  options.learning_rate.curve = scheduler::ExponentialDecay{0.1};
  compare(options, 12, {3, 5, 9});
}

TEST_CASE("a state without the number of steps, the center before or the optimizer trains to other bytes",
          "[checkpoint]") {
  RigOptions options = scheme_options({2});
  options.rule = engine::AdamW{};
  TrainingRig whole(options);
  whole.run(8);
  const Outcome expected = outcome_of(whole);
  const auto changed = [&](const auto& change) {
    TrainingRig first(options);
    first.run(4);
    scheduler::TrainingState state = first.scheduler().save();
    change(state);
    TrainingRig second(options);
    restore(second, state, options, options.learners);
    second.run(4);
    return outcome_of(second);
  };
  CHECK(changed([](auto&) {}) == expected);
  CHECK(changed([](auto& state) { state.learners[0].steps = 0; }) != expected);
  CHECK(changed([](auto& state) { state.central_before = state.model; }) != expected);
  CHECK(changed([](auto& state) { std::swap(state.learners[0].optimizer, state.learners[1].optimizer); }) != expected);
  CHECK(changed([](auto& state) { state.batches += 2; }) != expected);
}

TEST_CASE("a state restored with another number of learners trains like a resize at that point", "[checkpoint]") {
  for (const SchemeCase& scheme : all_schemes()) {
    const SchemeCase of_three = scheme.with_period(3);
    for (const int after : tests::kSanitized ? std::vector<int>{2} : std::vector<int>{1, 2, 4}) {
      CAPTURE(scheme.name, after);
      RigOptions options = scheme_options({3});
      options.most_learners = 4;
      options.synchronization = of_three.options;
      options.moving_average_epochs = 0.3;
      TrainingRig resized(options);
      resized.run(4);
      const scheduler::TrainingState state = resized.scheduler().save();
      resized.resize({after});
      resized.run(5);

      TrainingRig restored(options);
      restore(restored, state, options, {after});
      restored.run(5);
      CHECK(restored.scheduler().learners() == after);
      CHECK(outcome_of(restored) == outcome_of(resized));
    }
  }
}

TEST_CASE("the state of one device is that of two, and each goes on from the other's", "[checkpoint]") {
  const auto lists = tests::device_lists();
  if (lists.size() < 2) return;
  RigOptions one = scheme_options({4});
  RigOptions two = scheme_options(tests::spread(4, lists[1]), lists[1]);
  TrainingRig whole(one);
  whole.run(6);
  TrainingRig first(two);
  first.run(3);
  TrainingRig second(one);
  restore(second, first.scheduler().save(), one, one.learners);
  second.run(3);
  CHECK(outcome_of(second) == outcome_of(whole));
}

TEST_CASE("the state of another model or optimizer is refused", "[checkpoint]") {
  RigOptions options = scheme_options({2});
  TrainingRig rig(options);
  rig.run(1);
  const scheduler::TrainingState state = rig.scheduler().save();
  RigOptions other = options;
  other.classes = 4;
  TrainingRig larger(other);
  CHECK_THROWS_WITH(restore(larger, state, other, {2}), ContainsSubstring("logits.weight"));
  other = options;
  other.rule = engine::AdamW{};
  TrainingRig adam(other);
  CHECK_THROWS_WITH(restore(adam, state, other, {2}), ContainsSubstring("vectors of its optimizer"));
}

TEST_CASE("a saved state takes the place of the one before, also after the learners have changed", "[checkpoint]") {
  RigOptions options = scheme_options({3});
  options.most_learners = 4;
  TrainingRig rig(options);
  rig.run(1);
  scheduler::TrainingState state = rig.scheduler().save();
  const auto place_of = [](const scheduler::Tensors& tensors) { return tensors.front().values.data(); };
  const std::vector<const float*> places = {place_of(state.model), place_of(state.central_before),
                                            place_of(state.learners[0].weights), place_of(state.learners[1].weights)};
  rig.resize({2});
  rig.run(1);
  state = rig.scheduler().save(std::move(state));
  CHECK(places == std::vector<const float*>{place_of(state.model), place_of(state.central_before),
                                            place_of(state.learners[0].weights), place_of(state.learners[1].weights)});
  CHECK(vectors_of(state) == vectors_of(rig.scheduler().save()));
}
