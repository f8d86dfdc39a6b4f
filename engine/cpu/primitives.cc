#include "engine/cpu/primitives.h"

#include <string_view>

#include "engine/cpu/layout.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::prop_kind direction(OperatorMode mode) {
  return mode == OperatorMode::kTraining ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
}

dnnl::memory::dims pair(const Extent2d& extent) { return {extent.height, extent.width}; }

bool is_reference(const dnnl::primitive_desc_base& description) {
  // "ref:any", "bnorm_ref:any"; but "gemm:ref" is a convolution by matrix products
  return std::string_view(description.impl_info_str()).find("ref:") != std::string_view::npos;
}

template <typename Description>
Description require_kernel(Description description, const char* what) {
  if (is_reference(description)) {
    fail(ErrorKind::kDevice, "oneDNN has no fast kernel for this {} on this processor", what);
  }
  return description;
}

template <typename Description>
std::optional<Description> kernel_or_none(Description description) {
  if (description.get(true) == nullptr || is_reference(description)) return std::nullopt;
  return description;
}

// Those whose backward reads the output where there is a choice.
dnnl::algorithm algorithm_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kLeakyRelu:
      return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    case ActivationKind::kTanh:
      return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
    case ActivationKind::kSigmoid:
      return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    case ActivationKind::kGelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case ActivationKind::kSilu:
      return dnnl::algorithm::eltwise_swish;
  }
  fail(ErrorKind::kInternal, "unknown activation {}", static_cast<int>(kind));
}

dnnl::algorithm algorithm_of(const Pool2dSpec& spec) {
  if (spec.kind == PoolKind::kMax) return dnnl::algorithm::pooling_max;
  return spec.count_padding ? dnnl::algorithm::pooling_avg_include_padding
                            : dnnl::algorithm::pooling_avg_exclude_padding;
}

// What oneDNN calls alpha: the slope of a ReLU; swish is x / (1 + exp(-alpha x)).
float alpha_of(const ActivationFunction& f) {
  if (f.kind == ActivationKind::kLeakyRelu) return f.slope;
  return f.kind == ActivationKind::kSilu ? 1.0F : 0.0F;
}

// The same function behind another primitive, in its attributes.
dnnl::primitive_attr followed_by(const ActivationFunction& f) {
  dnnl::post_ops after;
  after.append_eltwise(1.0F, algorithm_of(f.kind), alpha_of(f), 0.0F);
  dnnl::primitive_attr attributes = user_scratchpad();
  attributes.set_post_ops(after);
  return attributes;
}

// `describe` makes a description of the forward primitive for given tensors.
template <typename Primitive, typename Describe>
typename Primitive::primitive_desc choose_forward(const dnnl::engine& engine, const PrepareOptions& options,
                                                  const LinearTensors& of, const Describe& describe, const char* what) {
  using Description = typename Primitive::primitive_desc;
  if (!options.parameters.empty()) {
    LinearTensors fixed = of;
    fixed.weights = cut_as(with_type(descriptor(options.parameters[0]), dtype_of(of.weights)), of.weights);
    if (auto kernel = kernel_or_none(Description(describe(fixed), user_scratchpad(), engine, true))) return *kernel;
  }
  return require_kernel(Description(describe(of), user_scratchpad(), engine), what);
}

// oneDNN 2.6 describes kernels that it then cannot generate: a sigmoid behind a bfloat16 convolution of two groups, on
// a processor without instructions for that type. What can be made is made once, for oneDNN keeps it.
bool can_be_made(const dnnl::primitive_desc_base& description) {
  try {
    const dnnl::primitive primitive(description.get());
    return true;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_runtime_error) throw;
    return false;
  }
}

// The same kernel on the same layouts, with the activation in it; `chosen` itself where it cannot.
template <typename Description, typename Describe>
LinearKernels with_activation(const dnnl::engine& engine, const Description& chosen, const LinearTensors& of,
                              const Describe& describe, std::optional<ActivationFunction> activation) {
  if (!activation.has_value()) return {chosen};
  const LinearTensors same{chosen.src_desc(), chosen.weights_desc(), of.bias, chosen.dst_desc()};
  const auto both = kernel_or_none(Description(describe(same), followed_by(*activation), engine, true));
  const bool is_same = both.has_value() && std::string_view(both->impl_info_str()) == chosen.impl_info_str();
  return is_same && can_be_made(*both) ? LinearKernels{*both, true} : LinearKernels{chosen};
}

// A window as oneDNN takes it, which counts the pixels between taps.
struct Slides {
  explicit Slides(const Window& window)
      : stride(pair(window.stride)),
        dilation{window.dilation.height - 1, window.dilation.width - 1},
        before(pair(window.padding)),
        after(pair(padding_after(window))) {}

  const dnnl::memory::dims stride, dilation, before, after;
};

dnnl::convolution_forward::desc convolution_desc(OperatorMode mode, const LinearTensors& of, const Slides& by) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  if (of.bias.is_zero()) {
    return {direction(mode), algorithm, of.input, of.weights, of.output, by.stride, by.dilation, by.before, by.after};
  }
  return {direction(mode), algorithm, of.input,    of.weights, of.bias,
          of.output,       by.stride, by.dilation, by.before,  by.after};
}

dnnl::convolution_backward_weights::desc weights_gradient_desc(const LinearTensors& of, const Slides& by) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::memory::desc gradient = with_type(of.weights, DType::kFloat32);
  if (of.bias.is_zero()) {
    return {algorithm, of.input, gradient, of.output, by.stride, by.dilation, by.before, by.after};
  }
  return {algorithm, of.input, gradient, of.bias, of.output, by.stride, by.dilation, by.before, by.after};
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

// With 16 channels and 16 filters oneDNN's kernel for input gradients does the same arithmetic in 0.7 of the time of
// its forward kernel (bench/results), and the reversed weights are few.
bool is_faster_reversed(const LinearTensors& of, const Window& window) {
  constexpr std::int64_t kBlock = 16;
  const dnnl::memory::dims weights = of.weights.dims();
  const bool is_same_size = 2 * window.padding.height == window.kernel.height - 1 &&
                            2 * window.padding.width == window.kernel.width - 1 &&
                            window.extra_padding == Extent2d{0, 0};
  return of.bias.is_zero() && dtype_of(of.weights) == DType::kFloat32 && weights.size() == 4 && weights[0] == kBlock &&
         weights[1] == kBlock && weights[2] * weights[3] > 1 && is_same_size && window.stride.height == 1 &&
         window.stride.width == 1 && window.dilation.height == 1 && window.dilation.width == 1;
}

// oneDNN 2.6 writes wrong places of maxima where they are words, since windows have more than 256 numbers, and these
// are bfloat16 in blocks of channels. tests/engine/pool2d_test.cc sees it.
bool mixes_up_maxima(const dnnl::memory::desc& places, const dnnl::memory::desc& input) {
  const bool is_blocked = input.data.format_desc.blocking.inner_nblks > 0;
  return places.data_type() == dnnl::memory::data_type::s32 && input.data_type() == dnnl::memory::data_type::bf16 &&
         is_blocked;
}

// Null where there is no fast kernel on the layouts of `forward`.
std::optional<dnnl::primitive_desc_base> reversed(const dnnl::engine& engine,
                                                  const dnnl::convolution_forward::primitive_desc& forward,
                                                  const LinearTensors& of, const Slides& by) {
  const dnnl::memory::desc input = forward.src_desc();  // stands for an output's gradient
  const dnnl::memory::desc output = forward.dst_desc();
  const dnnl::convolution_forward::desc other(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                              output, of.weights, input, by.stride, by.dilation, by.before, by.after);
  const dnnl::convolution_backward_data::desc gradient(dnnl::algorithm::convolution_direct, output, of.weights, input,
                                                       by.stride, by.dilation, by.before, by.after);
  const dnnl::convolution_forward::primitive_desc hint(other, user_scratchpad(), engine, true);
  if (hint.get(true) == nullptr) return std::nullopt;
  return kernel_or_none(
      dnnl::convolution_backward_data::primitive_desc(gradient, user_scratchpad(), engine, hint, true));
}

}  // namespace

dnnl::memory::desc any_layout(const dnnl::memory::dims& extents, DType dtype) {
  return {extents, native_type(dtype), dnnl::memory::format_tag::any};
}

dnnl::memory::desc cut_as(const dnnl::memory::desc& tensor, const dnnl::memory::desc& like) {
  return tensor.dims() == like.dims() ? tensor : tensor.reshape(like.dims());
}

LinearKernels convolution(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& of,
                          const Window& window, std::optional<ActivationFunction> activation) {
  const Slides by(window);
  const auto describe = [&](const LinearTensors& tensors) { return convolution_desc(options.mode, tensors, by); };
  const auto forward = choose_forward<dnnl::convolution_forward>(engine, options, of, describe, "convolution");
  LinearKernels kernels = with_activation(engine, forward, of, describe, activation);
  if (!activation.has_value() && is_faster_reversed(of, window)) kernels.reversed = reversed(engine, forward, of, by);
  if (options.mode == OperatorMode::kInference) return kernels;
  kernels.weights_gradient = require_kernel(dnnl::convolution_backward_weights::primitive_desc(
                                                weights_gradient_desc(of, by), user_scratchpad(), engine, forward),
                                            "convolution's weight gradient");
  if (!options.input_gradient) return kernels;
  const dnnl::convolution_backward_data::desc input_gradient(dnnl::algorithm::convolution_direct, of.input, of.weights,
                                                             of.output, by.stride, by.dilation, by.before, by.after);
  kernels.input_gradient = require_kernel(
      dnnl::convolution_backward_data::primitive_desc(input_gradient, user_scratchpad(), engine, forward),
      "convolution's input gradient");
  return kernels;
}

LinearKernels inner_product(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& of,
                            std::optional<ActivationFunction> activation) {
  const auto describe = [&](const LinearTensors& tensors) { return inner_product_desc(options.mode, tensors); };
  const auto forward = choose_forward<dnnl::inner_product_forward>(engine, options, of, describe, "dense layer");
  LinearKernels kernels = with_activation(engine, forward, of, describe, activation);
  if (options.mode == OperatorMode::kInference) return kernels;
  kernels.weights_gradient = require_kernel(dnnl::inner_product_backward_weights::primitive_desc(
                                                weights_gradient_desc(of), user_scratchpad(), engine, forward),
                                            "dense layer's weight gradient");
  if (!options.input_gradient) return kernels;
  const dnnl::inner_product_backward_data::desc input_gradient(of.input, of.weights, of.output);
  kernels.input_gradient = require_kernel(
      dnnl::inner_product_backward_data::primitive_desc(input_gradient, user_scratchpad(), engine, forward),
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
  auto forward_kernel = kernel_or_none(dnnl::pooling_forward::primitive_desc(forward, user_scratchpad(), engine, true));
  if (!forward_kernel.has_value()) return std::nullopt;
  if (mode == OperatorMode::kInference) return Pooling{*forward_kernel, std::nullopt};
  if (mixes_up_maxima(forward_kernel->workspace_desc(), input)) return std::nullopt;

  const dnnl::pooling_backward::desc backward(algorithm, input, forward_kernel->dst_desc(), pair(window.stride),
                                              pair(window.kernel), before, after);
  auto backward_kernel = kernel_or_none(
      dnnl::pooling_backward::primitive_desc(backward, user_scratchpad(), engine, *forward_kernel, true));
  if (!backward_kernel.has_value()) return std::nullopt;
  return Pooling{*forward_kernel, *backward_kernel};
}

std::optional<Activation> find_activation(const dnnl::engine& engine, OperatorMode mode,
                                          const dnnl::memory::desc& tensor, const ActivationFunction& f) {
  const dnnl::eltwise_forward::desc forward(direction(mode), algorithm_of(f.kind), tensor, alpha_of(f), 0.0F);
  auto forward_kernel = kernel_or_none(dnnl::eltwise_forward::primitive_desc(forward, user_scratchpad(), engine, true));
  if (!forward_kernel.has_value()) return std::nullopt;
  if (mode == OperatorMode::kInference) return Activation{*forward_kernel, std::nullopt};

  const dnnl::eltwise_backward::desc backward(algorithm_of(f.kind), tensor, tensor, alpha_of(f), 0.0F);
  auto backward_kernel = kernel_or_none(
      dnnl::eltwise_backward::primitive_desc(backward, user_scratchpad(), engine, *forward_kernel, true));
  if (!backward_kernel.has_value()) return std::nullopt;
  return Activation{*forward_kernel, *backward_kernel};
}

std::optional<BatchNormalization> find_batch_normalization(const dnnl::engine& engine, OperatorMode mode,
                                                           const dnnl::memory::desc& tensor, float epsilon, bool relu) {
  using Flags = dnnl::normalization_flags;
  const bool training = mode == OperatorMode::kTraining;
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (relu) flags |= Flags::fuse_norm_relu;
  const Flags forward_flags = training ? flags : flags | Flags::use_global_stats;
  const dnnl::batch_normalization_forward::desc forward(direction(mode), tensor, epsilon, forward_flags);
  auto forward_kernel =
      kernel_or_none(dnnl::batch_normalization_forward::primitive_desc(forward, user_scratchpad(), engine, true));
  if (!forward_kernel.has_value()) return std::nullopt;
  if (!training) return BatchNormalization{*forward_kernel, std::nullopt};

  const dnnl::batch_normalization_backward::desc backward(dnnl::prop_kind::backward, tensor, tensor, epsilon, flags);
  auto backward_kernel = kernel_or_none(
      dnnl::batch_normalization_backward::primitive_desc(backward, user_scratchpad(), engine, *forward_kernel, true));
  if (!backward_kernel.has_value()) return std::nullopt;
  return BatchNormalization{*forward_kernel, *backward_kernel};
}

}  // namespace arbalest::engine::cpu
