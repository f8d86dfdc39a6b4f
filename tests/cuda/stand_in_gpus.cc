#include "tests/cuda/gpus.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests {

const int kFirstSteps = 4;

void use_gpus(int count) { cuda_stand_in::reset({.devices = count}); }

}  // namespace arbalest::tests
