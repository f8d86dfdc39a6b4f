// GPUs of the stand-in that fail while a job trains on both.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

// Trains on two GPUs, one of which fails after some work, for every seventh number of works below `end`. Without care,
// the peers of a failed GPU and the host would wait forever; the stand-in reports that as a violation.
// `check(message)`: of the error that ends the training.
template <typename Check>
void check_failing_gpus(RigOptions options, int end, const Check& check) {
  for (int after = 0; after < end; after += 7) {
    options.graphs = after % 2 == 0;
    INFO("after " << after << (options.graphs ? ", with graphs" : ""));
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(after) + 1);
    std::string message;
    {
      TrainingRig rig(options);
      rig.run(1);
      cuda_stand_in::fail_execution(cudaErrorIllegalAddress, after);
      try {
        rig.run(20);
      } catch (const engine::Error& error) {
        CAPTURE(error.what());
        CHECK(error.kind() == engine::ErrorKind::kDevice);
        message = error.what();
      }
    }
    check(message);
    CHECK_NOTHROW(cuda_stand_in::require_clean(false));
  }
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
}

}  // namespace arbalest::tests
