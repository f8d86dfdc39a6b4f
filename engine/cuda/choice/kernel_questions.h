// Texts that name an operator wherever its kernels are chosen: equal texts, equal choices.
#pragma once

#include <string>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

// "input 32x1x28x28, 20 filters of 5x5 in 1 groups, stride 1x1, padding 0x0, dilation 1x1"
std::string to_text(const Conv2dSpec& spec);

// One of the passes that cuDNN computes: "input 32x64x8x8 ..., FP32: weight gradient"
std::string question_of_pass(const Conv2dSpec& spec, Precision precision, const char* pass);

// The operator with what its time depends on. The replicas of an inference are left out, so that an evaluation of the
// saved model, which has no teams, takes the kernels of the run.
// "convolution of input 32x1x28x28 ..., with bias, FP32, training without input gradient, 4 replicas"
std::string question_of(const Conv2dSpec& spec, const PrepareOptions& options);
// "dense layer of input 32x800, 500 units, with bias and activation, FP32, inference"
std::string question_of(const DenseSpec& spec, const PrepareOptions& options);

}  // namespace arbalest::engine::cuda
