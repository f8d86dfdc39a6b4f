// Descriptions of oneDNN primitives. Only this pair of files knows how oneDNN 2.x builds them (3.x differs). All use a
// scratchpad of the caller's. They throw ErrorKind::kDevice where oneDNN has only its reference loops, which are
// hundreds of times slower than its kernels, unless said otherwise.
#pragma once

#include <optional>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// The same extents, layout left to the primitive.
dnnl::memory::desc any_layout(const dnnl::memory::desc& descriptor);
// float32, order "any".
dnnl::memory::desc any_layout(const dnnl::memory::dims& extents);

bool is_reference(const dnnl::primitive_desc_base& description);

// The four tensors of a convolution or an inner product; no bias where `bias` is a zero descriptor.
struct LinearTensors {
  dnnl::memory::desc input;
  dnnl::memory::desc weights;
  dnnl::memory::desc bias;
  dnnl::memory::desc output;
};

// Null where there is none or only the reference.
std::optional<dnnl::convolution_forward::primitive_desc> find_convolution(const dnnl::engine& engine, OperatorMode mode,
                                                                          const LinearTensors& of,
                                                                          const Window& window);
dnnl::convolution_forward::primitive_desc convolution(const dnnl::engine& engine, OperatorMode mode,
                                                      const LinearTensors& of, const Window& window);
dnnl::convolution_backward_data::primitive_desc convolution_input_gradient(
    const dnnl::engine& engine, const LinearTensors& of, const Window& window,
    const dnnl::convolution_forward::primitive_desc& forward);
dnnl::convolution_backward_weights::primitive_desc convolution_weights_gradient(
    const dnnl::engine& engine, const LinearTensors& of, const Window& window,
    const dnnl::convolution_forward::primitive_desc& forward);

// Null where there is none or only the reference.
std::optional<dnnl::inner_product_forward::primitive_desc> find_inner_product(const dnnl::engine& engine,
                                                                              OperatorMode mode,
                                                                              const LinearTensors& of);
dnnl::inner_product_forward::primitive_desc inner_product(const dnnl::engine& engine, OperatorMode mode,
                                                          const LinearTensors& of);
dnnl::inner_product_backward_data::primitive_desc inner_product_input_gradient(
    const dnnl::engine& engine, const LinearTensors& of, const dnnl::inner_product_forward::primitive_desc& forward);
dnnl::inner_product_backward_weights::primitive_desc inner_product_weights_gradient(
    const dnnl::engine& engine, const LinearTensors& of, const dnnl::inner_product_forward::primitive_desc& forward);

struct Pooling {
  dnnl::pooling_forward::primitive_desc forward;
  std::optional<dnnl::pooling_backward::primitive_desc> backward;  // in training
};
// Null where oneDNN has only the reference for one of them. The input's gradient lies as the input.
std::optional<Pooling> find_pooling(const dnnl::engine& engine, OperatorMode mode, const dnnl::memory::desc& input,
                                    const dnnl::memory::dims& output, PoolKind kind, const Window& window);

struct Activation {
  dnnl::eltwise_forward::primitive_desc forward;
  std::optional<dnnl::eltwise_backward::primitive_desc> backward;  // in training; reads the output, not the input
};
// Null where oneDNN has only the reference, as for a sigmoid of a tensor with padding.
std::optional<Activation> find_activation(const dnnl::engine& engine, OperatorMode mode,
                                          const dnnl::memory::desc& tensor, ActivationKind kind);

}  // namespace arbalest::engine::cpu
