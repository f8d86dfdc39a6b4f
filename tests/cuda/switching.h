// Trains the small network while it switches between schemes.
#pragma once

#include <utility>
#include <vector>

#include "tests/support/schemes.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

struct Phase {
  sma::Options scheme;
  std::vector<int> learners;  // by device
};

// Phases: averaged gradients, then rounds that are left before their end, then a pull with fewer learners, and so on to
// learners alone.
inline std::vector<Phase> phases_on(int devices, int learners) {
  const std::vector<sma::Options> all = short_schemes();
  const auto on_each = [&](int count) { return std::vector<int>(static_cast<std::size_t>(devices), count); };
  return {{all[2], on_each(learners)},
          {all[7], on_each(learners)},
          {all[1], on_each(learners - 1)},
          {all[4], on_each(learners - 1)},
          {all.back(), on_each(learners - 1)}};
}

// Trains three iterations of every phase, on the options' devices. The first phase replaces the options' learners and
// scheme.
inline Trained train_through(RigOptions options, const std::vector<Phase>& phases) {
  options.learners = phases.front().learners;
  options.synchronization = phases.front().scheme;
  options.switches.clear();
  for (const Phase& phase : phases) options.switches.push_back(phase.scheme);
  TrainingRig rig(options);
  Trained trained;
  trained.loss = rig.run(3).sums.loss();
  for (std::size_t i = 1; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    for (std::size_t d = 0; d < phase.learners.size(); ++d) {
      rig.pools()[d]->keep(phase.learners[d]);
      rig.pools()[d]->prepare(phase.learners[d]);
    }
    rig.scheduler().switch_to(phase.scheme, scheduler::RateScaling::kKeep, phase.learners);
    for (const auto& pool : rig.pools()) pool->release_idle();
    trained.loss += rig.run(3).sums.loss();
  }
  trained.evaluation = rig.scheduler().evaluate(rig.test_ring());
  trained.weights = model_weights(rig);
  return trained;
}

}  // namespace arbalest::tests
