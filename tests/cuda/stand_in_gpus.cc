#include "tests/cuda/gpus.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/test_device.h"

namespace arbalest::tests {

const int kFirstSteps = 4;

void use_gpus(int count) { cuda_stand_in::reset({.devices = count}); }

void use_test_device() { use_gpus(1); }

}  // namespace arbalest::tests
