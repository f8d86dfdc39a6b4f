// The passes of a convolution, each as one kernel for all replicas of a team (tiled_product.h).
#pragma once

#include <cstddef>
#include <optional>

#include "engine/base/precision.h"
#include "engine/cuda/products/convolution_sizes.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/ops/activation.h"

namespace arbalest::engine::cuda {

// Below, images and weights are of the type of the products.

// output = f(convolution + bias). Device memory; `bias` may be null.
struct ConvolutionOutput {
  const void* input = nullptr;
  const void* weights = nullptr;
  const float* bias = nullptr;
  std::optional<ActivationFunction> activation = {};
  void* output = nullptr;
  void* scratch = nullptr;
};

// `output` is read if there is an activation. Gradients that are null are not computed, but for that of the weights.
struct ConvolutionGradients {
  const void* output_gradient = nullptr;
  const void* output = nullptr;
  std::optional<ActivationFunction> activation = {};
  const void* input = nullptr;
  const void* weights = nullptr;
  float* weights_gradient = nullptr;
  float* bias_gradient = nullptr;
  void* input_gradient = nullptr;
  const void* addend = nullptr;  // is added to the input's gradient; null: nothing
  void* scratch = nullptr;
};

class ConvolutionProducts {
 public:
  virtual ~ConvolutionProducts() = default;

  // Bytes of device memory that a pass needs beside its tensors.
  virtual std::size_t output_scratch_bytes(const ConvolutionSizes& sizes) const = 0;
  virtual std::size_t gradient_scratch_bytes(const ConvolutionSizes& sizes, bool with_input_gradient) const = 0;

  // Enqueues one kernel.
  virtual void enqueue_output(const ConvolutionSizes& sizes, const ConvolutionOutput& of,
                              const StreamContext& context) const = 0;
  // Enqueues one kernel; two for an input gradient with fewer than three filters or output columns, or with at most 16
  // filters and more than 32 channels or the other way around.
  virtual void enqueue_gradients(const ConvolutionSizes& sizes, const ConvolutionGradients& of,
                                 const StreamContext& context) const = 0;
};

// In float32, without tensor cores: on GPUs and on the stand-in of the tests the results are the same, bit by bit.
const ConvolutionProducts& float32_products();
// Tensors are float32 or bfloat16. Tensor cores multiply their numbers, rounded to TF32, and add in float32. The
// tensors should have channels last.
const ConvolutionProducts& tensor_float32_products();
const ConvolutionProducts& bfloat16_products();

}  // namespace arbalest::engine::cuda
