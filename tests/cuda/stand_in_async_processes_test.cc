// Asynchronous SGD over processes with a GPU each, whose worlds are in threads of this process. A push comes to the
// server of its shard as a message, which is pageable memory of the host.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/host/topology.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/process_rig.h"
#include "tests/support/schemes.h"
#include "tests/support/small_training.h"
#include "tests/support/staleness.h"
#include "tests/support/weights.h"

namespace arbalest::tests {
namespace {

const std::vector<ProcessPart> kOneGpuEach = {{{"cuda:0"}, {1}}, {{"cuda:1"}, {1}}};

RigOptions pushing(const sma::Options& scheme) {
  RigOptions options = options_on({}, {});
  options.layers = normalized_network();
  options.synchronization = scheme;
  options.learning_rate.base = 0.02;
  options.rule = engine::Sgd{.momentum = 0.5F};
  options.clip_gradient_norm = 1.0F;
  options.moving_average_epochs = 0.3;
  return options;
}

// Trains in processes that must have the same model at the end.
std::vector<Outcome> train_to_one_model(const std::vector<ProcessPart>& parts, const RigOptions& options,
                                        std::uint64_t seed, const Script& script) {
  cuda_stand_in::reset({.devices = static_cast<int>(parts.size())}, seed);
  std::vector<Outcome> outcomes = train_over(parts, options, script);
  cuda_stand_in::require_clean();
  for (const Outcome& outcome : outcomes) {
    CHECK((outcome.model == outcomes.front().model));
    CHECK(outcome.loss == outcomes.front().loss);
  }
  return outcomes;
}

// With plain SGD and a bound of 0, the order of the pushes changes only the rounding.
RigOptions in_rounds() {
  RigOptions options = pushing(async_sgd(0, 2));
  options.layers = small_network();
  options.rule = engine::Sgd{.weight_decay = 0.01F};
  options.clip_gradient_norm = 0.2F;
  return options;
}

}  // namespace

TEST_CASE("async processes with GPUs: learners learn, and all processes have the same model", "[training][async]") {
  const std::vector<ProcessPart> unequal = {{{"cuda:0"}, {2}}, {{"cuda:1"}, {1}}, {{"cuda:2"}, {1}}};
  for (const std::vector<ProcessPart>& parts : {kOneGpuEach, unequal}) {
    for (const int push_every : {1, 3}) {
      for (const std::optional<int> staleness : {std::optional<int>(1), std::optional<int>()}) {
        const auto precision = staleness ? engine::Precision::kFloat32 : engine::Precision::kBFloat16;
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
          CAPTURE(parts.size(), push_every, staleness.value_or(-1), engine::to_string(precision), seed);
          RigOptions options = pushing(async_sgd(staleness, push_every));
          options.precision = precision;
          train_to_one_model(parts, options, seed, [&](TrainingRig& rig) {
            const double before = rig.scheduler().evaluate(rig.test_ring()).loss();
            const int own = rig.pools().front()->count();
            const int iterations = 24 / push_every;
            const scheduler::Progress progress = rig.run(iterations);
            expect(progress.tasks == iterations * own * push_every, "all mini-batches");
            expect(count_of(progress.staleness) == iterations * own, "a staleness for each push");
            expect(rig.scheduler().evaluate(rig.test_ring()).loss() < before, "a lower loss");
            return progress;
          });
        }
      }
    }
  }
}

TEST_CASE("async processes with GPUs: they train to the model of processes with CPUs", "[training][async]") {
  const std::string core = "cpu:" + std::to_string(engine::host::allowed_cores().front());
  const Script script = [](TrainingRig& rig) { return rig.run(8); };
  const auto model = [](const std::vector<Outcome>& outcomes) {
    const std::vector<double>& values = outcomes.front().model;
    return std::vector<float>(values.begin(), values.end());
  };
  for (const bool has_statistics : {false, true}) {
    RigOptions options = in_rounds();
    if (has_statistics) options.layers = normalized_network();
    const std::vector<Outcome> expected = train_over({{{core}, {1}}, {{core}, {1}}}, options, script);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(has_statistics, seed);
      const std::vector<Outcome> outcomes = train_to_one_model(kOneGpuEach, options, seed, script);
      // The order of the pushes changes running statistics a little.
      CHECK(distance(model(outcomes), model(expected)) < (has_statistics ? 0.01 : 1e-5));
    }
  }
}

TEST_CASE("async processes with GPUs: a server clips the gradients of all processes", "[training][async]") {
  constexpr float kNorm = 0.01F;
  constexpr int kMiniBatches = 12;
  for (const int push_every : {1, 3}) {
    CAPTURE(push_every);
    RigOptions options = options_on({}, {});
    options.synchronization = async_sgd(1, push_every);
    options.rule = engine::Sgd{};
    options.clip_gradient_norm = kNorm;
    train_to_one_model(kOneGpuEach, options, 1, [&](TrainingRig& rig) {
      const std::vector<float> before = model_weights(rig);
      const scheduler::Progress progress = rig.run(kMiniBatches / push_every);
      const std::vector<float> after = model_weights(rig);
      double squares = 0.0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        squares += std::pow(static_cast<double>(after[i]) - static_cast<double>(before[i]), 2);
      }
      const double most = options.learning_rate.base * static_cast<double>(kNorm) * 2 * kMiniBatches;
      expect(std::sqrt(squares) < 1.001 * most, "no step beyond the norm");
      expect(std::sqrt(squares) > 0.1 * most, "steps");
      return progress;
    });
  }
}

TEST_CASE("async processes with GPUs: all save the whole state of the servers, and go on from it",
          "[training][async]") {
  RigOptions options = pushing(async_sgd(2));
  options.rule = engine::AdamW{};
  options.learning_rate.base = 0.01;
  std::vector<scheduler::TrainingState> states(2);
  std::vector<double> losses(2);
  train_to_one_model(kOneGpuEach, options, 1, [&](TrainingRig& rig) {
    const scheduler::Progress progress = rig.run(12);
    scheduler::TrainingState state = rig.scheduler().save();
    const std::size_t own = state.learners[0].is_here() ? 0 : 1;
    expect(state.learners[own].steps == 24, "the server has counted all pushes");
    losses[own] = rig.scheduler().evaluate(rig.test_ring()).loss();
    states[own] = std::move(state);
    return progress;
  });
  CHECK(losses[0] == losses[1]);
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const std::vector<float> values = flat(states[0].learners[0].optimizer.at(slot));
    CHECK((values == flat(states[1].learners[1].optimizer.at(slot))));
    CHECK(std::ranges::count(values, 0.0F) < std::ssize(values) / 2);
  }
  scheduler::TrainingState saved = std::move(states[0]);  // as a checkpoint has it: the learners of all processes
  saved.learners[1] = std::move(states[1].learners[1]);
  train_to_one_model(kOneGpuEach, options, 2, [&](TrainingRig& rig) {
    const std::size_t own = rig.scheduler().save().learners[0].is_here() ? 0 : 1;
    rig.scheduler().restore(saved, options.synchronization, options.learning_rate.with_learners, std::vector<int>{1});
    rig.ring().restart(saved.batches);
    expect(rig.scheduler().evaluate(rig.test_ring()).loss() == losses[0], "the saved model");
    const scheduler::TrainingState same = rig.scheduler().save();
    expect(flat(same.learners[own].weights) == flat(saved.learners[own].weights), "the saved weights");
    expect(flat(same.learners[own].optimizer.at(1)) == flat(saved.learners[own].optimizer.at(1)), "the saved state");
    const scheduler::Progress progress = rig.run(3);
    expect(rig.scheduler().save().learners[own].steps == 24 + 3 * 2, "a step for each push");
    return progress;
  });
}

}  // namespace arbalest::tests
