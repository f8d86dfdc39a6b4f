// Asynchronous training on GPUs of the stand-in, with several orders of their streams.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

// Trains, saves and restores under a server with `learners[d]` learners on GPU d. The order of the pushes depends on
// that of the streams, so models are not compared.
inline void check_async_training(const std::vector<int>& learners) {
  const int gpus = static_cast<int>(learners.size());
  std::vector<std::string> devices;
  for (int gpu = 0; gpu < gpus; ++gpu) devices.push_back("cuda:" + std::to_string(gpu));
  for (const int push_every : {1, 3}) {
    for (const engine::Precision precision : {engine::Precision::kFloat32, engine::Precision::kBFloat16}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(gpus, push_every, engine::to_string(precision), seed);
        cuda_stand_in::reset({.devices = gpus}, seed);
        {
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
        cuda_stand_in::require_clean();
      }
    }
  }
}

}  // namespace arbalest::tests
