#include <algorithm>

#include "engine/cpu/onednn/kernel_choice.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"

namespace arbalest::engine::cpu {

namespace {

// A window in oneDNN's terms: its dilation counts the pixels between taps.
struct Slides {
  explicit Slides(const Window& window)
      : stride(pair(window.stride)),
        dilation{window.dilation.height - 1, window.dilation.width - 1},
        before(pair(window.padding)),
        after(pair(padding_after(window))) {}

  const dnnl::memory::dims stride, dilation, before, after;
};

dnnl::convolution_forward::desc forward_desc(dnnl::algorithm algorithm, OperatorMode mode, const LinearTensors& of,
                                             const Slides& by) {
  if (of.bias.is_zero()) {
    return {direction(mode), algorithm, of.input, of.weights, of.output, by.stride, by.dilation, by.before, by.after};
  }
  return {direction(mode), algorithm, of.input,    of.weights, of.bias,
          of.output,       by.stride, by.dilation, by.before,  by.after};
}

dnnl::convolution_backward_weights::desc weights_gradient_desc(dnnl::algorithm algorithm, const LinearTensors& of,
                                                               const Slides& by) {
  const dnnl::memory::desc gradient = with_type(of.weights, DType::kFloat32);
  if (of.bias.is_zero()) {
    return {algorithm, of.input, gradient, of.output, by.stride, by.dilation, by.before, by.after};
  }
  return {algorithm, of.input, gradient, of.bias, of.output, by.stride, by.dilation, by.before, by.after};
}

dnnl::convolution_backward_data::desc input_gradient_desc(dnnl::algorithm algorithm, const LinearTensors& of,
                                                          const Slides& by) {
  return {algorithm, of.input, of.weights, of.output, by.stride, by.dilation, by.before, by.after};
}

// Winograd's minimal filtering computes 4 x 4 results of a 3 x 3 convolution with 36 multiplications instead of 144,
// but has to transform tensors and weights (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
// It pays from a measured number of output pixels over all examples (bench/results, "Winograd"). With fewer channels it
// never pays.
struct WinogradPays {
  bool on_tensors = false;           // for forward and the input's gradient
  bool on_weights_gradient = false;  // for the weights' gradient, which transforms no weights
};

WinogradPays winograd_pays(const LinearTensors& of, const Window& window) {
  const dnnl::memory::dims weights = of.weights.dims();
  const Extent2d three{3, 3}, one{1, 1}, none{0, 0};
  // oneDNN 2.6.3 computes wrong gradients if opposite sides have different padding (tests/engine/linear_ops_test.cc).
  if (dtype_of(of.weights) != DType::kFloat32 || weights.size() != 4 || window.kernel != three ||
      window.stride != one || window.dilation != one || window.extra_padding != none) {
    return {};
  }
  const dnnl::memory::dims output = of.output.dims();
  const std::int64_t pixels = output[0] * output[2] * output[3];
  const std::int64_t channels = std::min(weights[0], weights[1]);
  if (channels < 32) return {};
  return {pixels >= (channels < 64 ? 4096 : 1024), pixels >= 512};
}

// With 16 channels and 16 filters, oneDNN's kernel for input gradients takes 0.7 of the time of its forward kernel for
// the same arithmetic (bench/results), and the reversed weights are few.
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

// Returns none if there is no fast kernel for the layouts of `forward`.
std::optional<dnnl::primitive_desc_base> reversed(const dnnl::engine& engine,
                                                  const dnnl::convolution_forward::primitive_desc& forward,
                                                  const LinearTensors& of, const Slides& by) {
  const dnnl::memory::desc input = forward.src_desc();  // used as an output's gradient
  const dnnl::memory::desc output = forward.dst_desc();
  const auto direct = dnnl::algorithm::convolution_direct;
  const LinearTensors exchanged{output, of.weights, {}, input};
  const dnnl::convolution_forward::primitive_desc hint(forward_desc(direct, OperatorMode::kTraining, exchanged, by),
                                                       primitive_attributes(), engine, true);
  if (hint.get(true) == nullptr) return std::nullopt;
  return kernel_or_none(dnnl::convolution_backward_data::primitive_desc(input_gradient_desc(direct, exchanged, by),
                                                                        primitive_attributes(), engine, hint, true));
}

}  // namespace

LinearKernels convolution(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& of,
                          const Window& window, std::optional<ActivationFunction> activation) {
  using Forward = dnnl::convolution_forward::primitive_desc;
  using WeightsGradient = dnnl::convolution_backward_weights::primitive_desc;
  using InputGradient = dnnl::convolution_backward_data::primitive_desc;
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto winograd = dnnl::algorithm::convolution_winograd;
  const Slides by(window);
  const WinogradPays pays = winograd_pays(of, window);
  const auto by_algorithm = [&](dnnl::algorithm algorithm) {
    // In inference mode Winograd's kernel would require weights that were transformed beforehand.
    const OperatorMode mode = algorithm == winograd ? OperatorMode::kTraining : options.mode;
    return [&by, algorithm, mode](const LinearTensors& tensors) { return forward_desc(algorithm, mode, tensors, by); };
  };
  const Forward forward =
      choose_forward<dnnl::convolution_forward>(engine, options, of, by_algorithm(direct), "convolution");
  // Tensors have the direct kernel's layouts, whichever kernel computes.
  const LinearTensors same{forward.src_desc(), forward.weights_desc(), of.bias, forward.dst_desc()};
  const auto minimal = pays.on_tensors
                           ? kernel_or_none(Forward(by_algorithm(winograd)(same), primitive_attributes(), engine, true))
                           : std::nullopt;
  LinearKernels kernels = with_activation(engine, minimal.value_or(forward), of,
                                          by_algorithm(minimal.has_value() ? winograd : direct), activation);
  if (!activation.has_value() && is_faster_reversed(of, window)) kernels.reversed = reversed(engine, forward, of, by);
  if (options.mode == OperatorMode::kInference) return kernels;

  if (pays.on_weights_gradient) {
    kernels.weights_gradient = kernel_or_none(
        WeightsGradient(weights_gradient_desc(winograd, same, by), primitive_attributes(), engine, forward, true));
  }
  if (!kernels.weights_gradient.has_value()) {
    kernels.weights_gradient =
        require_kernel(WeightsGradient(weights_gradient_desc(direct, of, by), primitive_attributes(), engine, forward),
                       "convolution's weight gradient");
  }
  if (!options.input_gradient) return kernels;
  if (pays.on_tensors) {
    const LinearTensors other_weights{same.input, of.weights, {}, same.output};
    kernels.input_gradient = kernel_or_none(
        InputGradient(input_gradient_desc(winograd, other_weights, by), primitive_attributes(), engine, forward, true));
  }
  if (!kernels.input_gradient.has_value()) {
    kernels.input_gradient =
        require_kernel(InputGradient(input_gradient_desc(direct, of, by), primitive_attributes(), engine, forward),
                       "convolution's input gradient");
  }
  return kernels;
}

}  // namespace arbalest::engine::cpu
