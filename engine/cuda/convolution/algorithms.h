// Selects and sorts cuDNN's algorithms for a convolution.
#pragma once

#include <string>
#include <vector>

#include "engine/base/precision.h"
#include "engine/cuda/runtime/check.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cuda {

enum class ConvolutionKind { kForward, kWeightGradient, kInputGradient };

struct ConvolutionAlgorithm {
  int number = 0;  // value of cuDNN's enumeration for the kind
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

// "IMPLICIT_GEMM" for cuDNN's CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM
std::string name_of(ConvolutionKind kind, int number);

// Drops the algorithms that break the promise of `precision`, and sorts the others by the time that they are expected
// to take beside other learners. `listed` are repeatable algorithms in cuDNN's order. cuDNN expects a convolution to
// have the GPU for itself, and its order for gradients in float32 is far from the measured one
// (bench/results/2026-11-26-h100.md).
std::vector<ConvolutionAlgorithm> order_of_trial(std::vector<ConvolutionAlgorithm> listed, ConvolutionKind kind,
                                                 const Window& window, Precision precision);

}  // namespace arbalest::engine::cuda
