// What tests of training ask of the GPUs they run on: the stand-in's, or those of the machine.
#pragma once

namespace arbalest::tests {

// From here on there are `count` GPUs: the stand-in has that many. A machine that has fewer, or a build that cannot
// join them, ends the test as skipped. Before anything uses a GPU.
void use_gpus(int count);

// What LeNet's first losses are compared over: a hundred steps on a GPU, a few on the stand-in, which is slow.
extern const int kFirstSteps;

}  // namespace arbalest::tests
