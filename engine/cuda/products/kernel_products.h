// ConvolutionProducts by the kernels for one type in memory and one arithmetic.
#pragma once

#include <algorithm>

#include "engine/cuda/products/gradient_kernels.h"
#include "engine/cuda/products/output_kernels.h"

namespace arbalest::engine::cuda {

template <typename T, typename Arithmetic>
class KernelProducts final : public ConvolutionProducts {
 public:
  std::size_t output_scratch_bytes(const ConvolutionSizes& sizes) const override {
    return output_bytes<Arithmetic>(sizes);
  }
  std::size_t gradient_scratch_bytes(const ConvolutionSizes& sizes, bool with_input_gradient) const override {
    return gradient_bytes<Arithmetic>(sizes, with_input_gradient);
  }
  void enqueue_output(const ConvolutionSizes& sizes, const ConvolutionOutput& of,
                      const StreamContext& context) const override {
    enqueue_output_of<T, Arithmetic>(sizes, of, context);
  }
  void enqueue_gradients(const ConvolutionSizes& sizes, const ConvolutionGradients& of,
                         const StreamContext& context) const override {
    enqueue_gradients_of<T, Arithmetic>(sizes, of, context);
  }
};

}  // namespace arbalest::engine::cuda
