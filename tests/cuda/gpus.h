// The GPUs of training tests: the stand-in's, or those of the machine.
#pragma once

namespace arbalest::tests {

// Ensures that there are `count` GPUs: the stand-in makes as many. A machine with fewer GPUs, or a build that cannot
// join them, ends the test as skipped. Call before anything uses a GPU.
void use_gpus(int count);

// Number of steps over which LeNet's first losses are compared: a hundred on a GPU, a few on the stand-in, which is
// slow.
extern const int kFirstSteps;

}  // namespace arbalest::tests
