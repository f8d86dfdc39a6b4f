#include <string>

#include "engine/backends/cuda_devices.h"
#include "tests/cuda/gpus.h"
#include "tests/support/skip.h"
#include "tests/support/test_device.h"

namespace arbalest::tests {

const int kFirstSteps = 100;

void use_gpus(int count) {
  const auto found = engine::find_cuda_devices().devices.size();
  if (found < static_cast<std::size_t>(count)) {
    skip_test("needs " + std::to_string(count) + " GPUs, and this machine has " + std::to_string(found));
  }
}

void use_test_device() { use_gpus(1); }

}  // namespace arbalest::tests
