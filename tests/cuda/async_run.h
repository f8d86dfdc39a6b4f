// One run of asynchronous SGD on GPUs of the stand-in or on real ones.
#pragma once

#include <string>
#include <vector>

#include "tests/support/small_training.h"

namespace arbalest::tests {

// Trains, saves and restores under a server with `learners[d]` learners on GPU d. The order of the pushes depends on
// that of the streams, so models are not compared.
inline void check_async_run(const std::vector<int>& learners, int push_every, engine::Precision precision) {
  std::vector<std::string> devices;
  for (std::size_t gpu = 0; gpu < learners.size(); ++gpu) devices.push_back("cuda:" + std::to_string(gpu));
  RigOptions options = options_on(devices, learners);
  options.layers = normalized_network();
  options.precision = precision;
  options.synchronization = sma::defaults_of(sma::Scheme::kAsyncSgd);
  options.synchronization.period = push_every;
  options.synchronization.staleness = 1;
  options.learning_rate.base = 0.02;
  options.rule = engine::Sgd{.momentum = 0.5F};
  options.clip_gradient_norm = 1.0F;
  options.moving_average_epochs = 0.3;
  TrainingRig rig(options);
  const double before = rig.scheduler().evaluate(rig.test_ring()).loss();
  rig.run(24 / push_every);
  const double after = rig.scheduler().evaluate(rig.test_ring()).loss();
  CHECK(after < before);
  const scheduler::TrainingState state = rig.scheduler().save();
  rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners, learners);
  rig.ring().restart(state.batches);
  CHECK(rig.scheduler().evaluate(rig.test_ring()).loss() == after);
  rig.run(2);
}

}  // namespace arbalest::tests
