#include "engine/cpu/onednn/primitives.h"

#include "engine/base/error.h"
#include "engine/cpu/onednn/kernel_choice.h"
#include "engine/cpu/onednn/layout.h"

namespace arbalest::engine::cpu {

namespace {

dnnl::algorithm algorithm_of(const Pool2dSpec& spec) {
  if (spec.kind == PoolKind::kMax) return dnnl::algorithm::pooling_max;
  return spec.count_padding ? dnnl::algorithm::pooling_avg_include_padding
                            : dnnl::algorithm::pooling_avg_exclude_padding;
}

dnnl::inner_product_forward::desc inner_product_desc(OperatorMode mode, const LinearTensors& of) {
  if (of.bias.is_zero()) return {direction(mode), of.input, of.weights, of.output};
  return {direction(mode), of.input, of.weights, of.bias, of.output};
}

dnnl::inner_product_backward_weights::desc weights_gradient_desc(const LinearTensors& of) {
  const dnnl::memory::desc gradient = with_type(of.weights, DType::kFloat32);
  if (of.bias.is_zero()) return {of.input, gradient, of.output};
  return {of.input, gradient, of.bias, of.output};
}

// oneDNN 2.6 writes wrong places of maxima if a place takes a 32-bit word (windows with more than 256 numbers) and the
// numbers are bfloat16 in blocks of channels. tests/engine/pool2d_test.cc shows the error.
bool mixes_up_maxima(const dnnl::memory::desc& places, const dnnl::memory::desc& input) {
  const bool is_blocked = input.data.format_desc.blocking.inner_nblks > 0;
  return places.data_type() == dnnl::memory::data_type::s32 && input.data_type() == dnnl::memory::data_type::bf16 &&
         is_blocked;
}

}  // namespace

dnnl::memory::desc any_layout(const dnnl::memory::dims& extents, DType dtype) {
  return {extents, native_type(dtype), dnnl::memory::format_tag::any};
}

dnnl::memory::desc cut_as(const dnnl::memory::desc& tensor, const dnnl::memory::desc& like) {
  return tensor.dims() == like.dims() ? tensor : tensor.reshape(like.dims());
}

LinearKernels inner_product(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& of,
                            std::optional<ActivationFunction> activation) {
  const auto describe = [&](const LinearTensors& tensors) { return inner_product_desc(options.mode, tensors); };
  const auto forward = choose_forward<dnnl::inner_product_forward>(engine, options, of, describe, "dense layer");
  LinearKernels kernels = with_activation(engine, forward, of, describe, activation);
  if (options.mode == OperatorMode::kInference) return kernels;
  kernels.weights_gradient = require_kernel(dnnl::inner_product_backward_weights::primitive_desc(
                                                weights_gradient_desc(of), primitive_attributes(), engine, forward),
                                            "dense layer's weight gradient");
  if (!options.input_gradient) return kernels;
  const dnnl::inner_product_backward_data::desc input_gradient(of.input, of.weights, of.output);
  kernels.input_gradient = require_kernel(
      dnnl::inner_product_backward_data::primitive_desc(input_gradient, primitive_attributes(), engine, forward),
      "dense layer's input gradient");
  return kernels;
}

std::optional<Pooling> find_pooling(const dnnl::engine& engine, OperatorMode mode, const dnnl::memory::desc& input,
                                    const Pool2dSpec& spec) {
  const Window& window = spec.window;
  const Shape& shape = spec.input.shape();
  const dnnl::memory::dims output = dims(window_output_shape(shape, window, shape[1]));
  const dnnl::algorithm algorithm = algorithm_of(spec);
  const dnnl::memory::dims before = pair(window.padding);
  const dnnl::memory::dims after = pair(padding_after(window));
  const dnnl::pooling_forward::desc forward(direction(mode), algorithm, input, any_layout(output, spec.input.dtype()),
                                            pair(window.stride), pair(window.kernel), before, after);
  auto forward_kernel =
      kernel_or_none(dnnl::pooling_forward::primitive_desc(forward, primitive_attributes(), engine, true));
  if (!forward_kernel.has_value()) return std::nullopt;
  if (mode == OperatorMode::kInference) return Pooling{*forward_kernel, std::nullopt};
  if (mixes_up_maxima(forward_kernel->workspace_desc(), input)) return std::nullopt;

  const dnnl::pooling_backward::desc backward(algorithm, input, forward_kernel->dst_desc(), pair(window.stride),
                                              pair(window.kernel), before, after);
  auto backward_kernel = kernel_or_none(
      dnnl::pooling_backward::primitive_desc(backward, primitive_attributes(), engine, *forward_kernel, true));
  if (!backward_kernel.has_value()) return std::nullopt;
  return Pooling{*forward_kernel, *backward_kernel};
}

std::optional<Activation> find_activation(const dnnl::engine& engine, OperatorMode mode,
                                          const dnnl::memory::desc& tensor, const ActivationFunction& f) {
  const dnnl::eltwise_forward::desc forward(direction(mode), algorithm_of(f.kind), tensor, alpha_of(f), beta_of(f));
  auto forward_kernel =
      kernel_or_none(dnnl::eltwise_forward::primitive_desc(forward, primitive_attributes(), engine, true));
  if (!forward_kernel.has_value()) return std::nullopt;
  if (mode == OperatorMode::kInference) return Activation{*forward_kernel, std::nullopt};

  const dnnl::eltwise_backward::desc backward(algorithm_of(f.kind), tensor, tensor, alpha_of(f), beta_of(f));
  auto backward_kernel = kernel_or_none(
      dnnl::eltwise_backward::primitive_desc(backward, primitive_attributes(), engine, *forward_kernel, true));
  if (!backward_kernel.has_value()) return std::nullopt;
  return Activation{*forward_kernel, *backward_kernel};
}

std::optional<BatchNormalization> find_batch_normalization(const dnnl::engine& engine, OperatorMode mode,
                                                           const dnnl::memory::desc& tensor, float epsilon, bool relu,
                                                           bool given_statistics) {
  using Flags = dnnl::normalization_flags;
  const bool training = mode == OperatorMode::kTraining;
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (relu) flags |= Flags::fuse_norm_relu;
  if (!training || given_statistics) flags |= Flags::use_global_stats;
  const dnnl::batch_normalization_forward::desc forward(direction(mode), tensor, epsilon, flags);
  auto forward_kernel =
      kernel_or_none(dnnl::batch_normalization_forward::primitive_desc(forward, primitive_attributes(), engine, true));
  if (!forward_kernel.has_value()) return std::nullopt;
  if (!training) return BatchNormalization{*forward_kernel, std::nullopt};

  const dnnl::batch_normalization_backward::desc backward(dnnl::prop_kind::backward, tensor, tensor, epsilon, flags);
  auto backward_kernel = kernel_or_none(dnnl::batch_normalization_backward::primitive_desc(
      backward, primitive_attributes(), engine, *forward_kernel, true));
  if (!backward_kernel.has_value()) return std::nullopt;
  return BatchNormalization{*forward_kernel, *backward_kernel};
}

}  // namespace arbalest::engine::cpu
