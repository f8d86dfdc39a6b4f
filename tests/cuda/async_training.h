// Asynchronous training on GPUs of the stand-in, with several orders of their streams.
#pragma once

#include <vector>

#include "tests/cuda/async_run.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests {

inline void check_async_training(const std::vector<int>& learners) {
  const int gpus = static_cast<int>(learners.size());
  for (const int push_every : {1, 3}) {
    for (const engine::Precision precision : {engine::Precision::kFloat32, engine::Precision::kBFloat16}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(gpus, push_every, engine::to_string(precision), seed);
        cuda_stand_in::reset({.devices = gpus}, seed);
        check_async_run(learners, push_every, precision);
        cuda_stand_in::require_clean();
      }
    }
  }
}

}  // namespace arbalest::tests
