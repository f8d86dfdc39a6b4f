// Descriptions of oneDNN primitives. Only the files that implement this header know how oneDNN 2.x builds them (3.x
// differs). All primitives use the caller's scratchpad. Unless stated otherwise, the functions throw ErrorKind::kDevice
// if oneDNN has only its reference loops, which are hundreds of times slower than its kernels.
#pragma once

#include <optional>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// A descriptor that lets the kernel choose the layout.
dnnl::memory::desc any_layout(const dnnl::memory::dims& extents, DType dtype);

// Element type in memory of tensors of convolutions and dense layers. Bias and parameter gradients are float32.
inline DType linear_type(Precision precision) {
  return precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32;
}

// The four tensors of a convolution or an inner product. Without bias, `bias` is a zero descriptor.
struct LinearTensors {
  dnnl::memory::desc input;
  dnnl::memory::desc weights;
  dnnl::memory::desc bias;
  dnnl::memory::desc output;
};

// Forward kernel and, in training, the kernels of the gradients that `PrepareOptions` asks for.
struct LinearKernels {
  dnnl::primitive_desc_base forward;
  bool applies_activation = false;  // whether forward applies the activation
  std::optional<dnnl::primitive_desc_base> weights_gradient = {};
  std::optional<dnnl::primitive_desc_base> input_gradient = {};
  // Computes `forward` as the input gradient of a convolution whose weights have both kernel axes reversed and channels
  // and filters exchanged. Set if that is faster.
  std::optional<dnnl::primitive_desc_base> reversed = {};

  dnnl::memory::desc bias() const { return forward.weights_desc(1); }
  bool has_bias() const { return !bias().is_zero(); }
};
// Splits the axes of a tensor in canonical order like those of `like`; returns the tensor itself if they match.
dnnl::memory::desc cut_as(const dnnl::memory::desc& tensor, const dnnl::memory::desc& like);
// If the options fix the weights' layout, the kernel reads that layout, in the type of `of`, if possible; otherwise the
// kernel chooses. `forward` includes the activation if the kernel chosen without it can apply it.
LinearKernels convolution(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& of,
                          const Window& window, std::optional<ActivationFunction> activation);
LinearKernels inner_product(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& of,
                            std::optional<ActivationFunction> activation);

struct Pooling {
  dnnl::pooling_forward::primitive_desc forward;
  std::optional<dnnl::pooling_backward::primitive_desc> backward;  // in training
};
// Null if oneDNN has only the reference for one of them. The input's gradient has the input's layout.
//  input: layout of the spec's input for the kernel
std::optional<Pooling> find_pooling(const dnnl::engine& engine, OperatorMode mode, const dnnl::memory::desc& input,
                                    const Pool2dSpec& spec);

struct Activation {
  dnnl::eltwise_forward::primitive_desc forward;
  std::optional<dnnl::eltwise_backward::primitive_desc>
      backward;  // in training; reads the output unless the function differentiates its input
};
// Null if oneDNN has only the reference, as for a sigmoid of a tensor with padding.
std::optional<Activation> find_activation(const dnnl::engine& engine, OperatorMode mode,
                                          const dnnl::memory::desc& tensor, const ActivationFunction& f);

struct BatchNormalization {
  dnnl::batch_normalization_forward::primitive_desc forward;
  std::optional<dnnl::batch_normalization_backward::primitive_desc> backward;  // in training
};
// Null if oneDNN has only the reference. Output and gradients have the input's layout. In training forward writes the
// batch's statistics; with `given_statistics` and at inference it reads them.
std::optional<BatchNormalization> find_batch_normalization(const dnnl::engine& engine, OperatorMode mode,
                                                           const dnnl::memory::desc& tensor, float epsilon, bool relu,
                                                           bool given_statistics);

}  // namespace arbalest::engine::cpu
