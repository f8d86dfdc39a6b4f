// The passes of a convolution in float32, each as one kernel for all replicas of a team (tiled_product.h). On GPUs and
// on the stand-in of the tests the results are the same, bit by bit.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/cuda/products/convolution_sizes.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/ops/activation.h"

namespace arbalest::engine::cuda {

// output = f(convolution + bias). Device memory; `bias` may be null.
struct ConvolutionOutput {
  const float* input = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;
  std::optional<ActivationFunction> activation = {};
  float* output = nullptr;
  void* scratch = nullptr;
};

// `output` is read if there is an activation. Gradients that are null are not computed, but for that of the weights.
struct ConvolutionGradients {
  const float* output_gradient = nullptr;
  const float* output = nullptr;
  std::optional<ActivationFunction> activation = {};
  const float* input = nullptr;
  const float* weights = nullptr;
  float* weights_gradient = nullptr;
  float* bias_gradient = nullptr;
  float* input_gradient = nullptr;
  const float* addend = nullptr;  // is added to the input's gradient; null: nothing
  void* scratch = nullptr;
};

// Bytes of device memory that a pass needs beside its tensors.
std::size_t output_scratch_bytes(const ConvolutionSizes& sizes);
std::size_t gradient_scratch_bytes(const ConvolutionSizes& sizes, bool with_input_gradient);

// Enqueues one kernel.
void enqueue_output(const ConvolutionSizes& sizes, const ConvolutionOutput& of, const StreamContext& context);
// Enqueues one kernel; two for an input gradient with fewer than three filters or output columns.
void enqueue_gradients(const ConvolutionSizes& sizes, const ConvolutionGradients& of, const StreamContext& context);

}  // namespace arbalest::engine::cuda
