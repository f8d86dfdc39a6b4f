// Training in several processes, whose worlds are in threads of the test program.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/process/memory_network.h"
#include "tests/support/catch.h"
#include "tests/support/evaluation.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {

// One process knows this at the end.
struct Outcome {
  std::vector<double> model;
  std::vector<std::vector<double>> replicas;  // its own
  double loss = 0.0;
  double accuracy = 0.0;
  double distance = 0.0;
  double examples = 0.0;
};

// Returns the weights of every learner, in canonical order.
inline std::vector<std::vector<double>> replicas_of(TrainingRig& rig) {
  std::vector<std::vector<double>> weights;
  for (const auto& pool : rig.pools()) {
    for (const auto& learner : pool->learners()) {
      weights.push_back(flatten(pool->training_plan().parameters().to_canonical(pool->device(), learner->weights())));
    }
  }
  return weights;
}

using Script = std::function<scheduler::Progress(TrainingRig&)>;

inline Outcome outcome_of(TrainingRig& rig, const Script& script) {
  const scheduler::Progress progress = script(rig);
  const scheduler::Evaluation evaluation = rig.scheduler().evaluate(rig.test_ring());
  return {.model = flatten(rig.scheduler().snapshot()),
          .replicas = replicas_of(rig),
          .loss = evaluation.loss(),
          .accuracy = accuracy_of(evaluation),
          .distance = progress.replica_distance,
          .examples = static_cast<double>(progress.examples)};
}

// The devices of one process, and its learners by device.
struct ProcessPart {
  std::vector<std::string> devices;
  std::vector<int> learners;
};

inline RigOptions options_of(const ProcessPart& part, const RigOptions& options) {
  RigOptions own = options;
  own.devices = part.devices;
  own.learners = part.learners;
  return own;
}

inline Outcome train_alone(const ProcessPart& part, const RigOptions& options, const Script& script) {
  TrainingRig rig(options_of(part, options));
  return outcome_of(rig, script);
}

// The outcome of each process.
inline std::vector<Outcome> train_over(const std::vector<ProcessPart>& parts, const RigOptions& options,
                                       const Script& script) {
  MemoryNetwork network(static_cast<int>(parts.size()));
  std::vector<Outcome> outcomes(parts.size());
  std::vector<std::exception_ptr> failures(parts.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(static_cast<int>(rank));
      try {
        RigOptions own = options_of(parts[rank], options);
        own.world = world.get();
        {
          TrainingRig rig(own);
          outcomes[rank] = outcome_of(rig, script);
        }
        world->close();
      } catch (const engine::Error& error) {
        world->announce_failure(error);  // the others must not wait
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return outcomes;
}

inline void check_equal(const Outcome& alone, const std::vector<Outcome>& processes) {
  std::vector<std::vector<double>> replicas;
  double examples = 0.0;
  for (const Outcome& process : processes) {
    CHECK((process.model == alone.model));
    CHECK(process.loss == alone.loss);
    CHECK(process.accuracy == alone.accuracy);
    CHECK_THAT(process.distance,
               Catch::Matchers::WithinRel(alone.distance, 1e-6));  // a sum of squares in another order
    replicas.insert(replicas.end(), process.replicas.begin(), process.replicas.end());
    examples += process.examples;
  }
  CHECK((replicas == alone.replicas));
  CHECK(examples == alone.examples);
}

}  // namespace arbalest::tests
