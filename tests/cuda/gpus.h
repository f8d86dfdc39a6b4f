// The GPUs of training tests: those of the stand-in or of the machine.
#pragma once

namespace arbalest::tests {

// Ensures that there are `count` GPUs. The stand-in creates them. On a machine with fewer GPUs, or in a build that
// cannot connect them, the test is skipped. Call before anything uses a GPU.
void use_gpus(int count);

// Number of steps for which LeNet's first losses are compared: a hundred on a GPU, and a few on the slow stand-in.
extern const int kFirstSteps;

}  // namespace arbalest::tests
