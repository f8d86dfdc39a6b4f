#include "engine/cuda/products/tiled_linear.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/linear.h"
#include "engine/cuda/products/convolution_products.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::int64_t kMostChannels = 64;
constexpr std::int64_t kMostExamples = 128;

class TiledLinear final : public LinearOperator {
 public:
  TiledLinear(const PrepareOptions& options, bool bias, std::optional<ActivationFunction> activation,
              const ConvolutionSizes& sizes, Layout output, const Layout& weights)
      : LinearOperator(options, bias, activation, Kernels::kOwn), sizes_(sizes) {
    traits_.output = std::move(output);
    set_parameters(options, weights, sizes.filters);
    traits_.backward_reads_inputs = training_;
    traits_.adds_to_gradient = input_gradient_;
    std::size_t scratch = output_scratch_bytes(sizes);
    if (training_) scratch = std::max(scratch, gradient_scratch_bytes(sizes, input_gradient_));
    traits_.scratch_bytes = aligned(scratch);
  }

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override {
    enqueue_output(sizes_,
                   {.input = static_cast<const float*>(of.input),
                    .weights = static_cast<const float*>(of.weights),
                    .bias = of.bias,
                    .activation = activation_,
                    .output = static_cast<float*>(of.output),
                    .scratch = of.scratch},
                   context);
  }

  void run_backward(const LinearBackward& of, const StreamContext& context) const override {
    enqueue_gradients(sizes_,
                      {.output_gradient = static_cast<const float*>(of.output_gradient),
                       .output = static_cast<const float*>(of.output),
                       .activation = activation_,
                       .input = static_cast<const float*>(of.read),
                       .weights = static_cast<const float*>(of.weights),
                       .weights_gradient = of.weights_gradient,
                       .bias_gradient = of.bias_gradient,
                       .input_gradient = static_cast<float*>(of.input_gradient),
                       .addend = static_cast<const float*>(of.addend),
                       .scratch = of.scratch},
                      context);
  }

  const ConvolutionSizes sizes_;
};

bool is_float32(const Layout& input, const PrepareOptions& options) {
  return options.precision == Precision::kFloat32 && input.dtype() == DType::kFloat32;
}

Layout weights_of(const PrepareOptions& options, const Shape& shape, Order order) {
  return options.parameters.empty() ? make_layout(shape, DType::kFloat32, order) : options.parameters[0];
}

std::unique_ptr<Operator> make(const PrepareOptions& options, bool bias, std::optional<ActivationFunction> activation,
                               const std::optional<ConvolutionSizes>& sizes, const Layout& output,
                               const Layout& weights) {
  if (!sizes.has_value()) return nullptr;
  return std::make_unique<TiledLinear>(options, bias, activation, *sizes, output, weights);
}

}  // namespace

std::unique_ptr<Operator> make_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  if (!is_float32(spec.input, options) || spec.groups != 1) return nullptr;
  if (std::max(input[1], spec.filters) > kMostChannels) return nullptr;
  const Layout output = make_layout(window_output_shape(input, spec.window, spec.filters), DType::kFloat32,
                                    Order::kCanonical);
  const Layout weights = weights_of(options, weights_shape(spec), Order::kCanonical);
  return make(options, spec.bias, spec.activation, convolution_sizes(spec.input, weights, output, spec.window), output,
              weights);
}

std::unique_ptr<Operator> make_tiled_operator(const DenseSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  if (!is_float32(spec.input, options) || input[0] > kMostExamples) return nullptr;
  const Order order = order_of(spec.input);
  const Layout weights = order == Order::kChannelsLast
                             ? weights_of(options, input.with_batch(spec.units), order)
                             : weights_of(options, {spec.units, input.elements_per_example()}, order);
  if (order_of(weights) != order) return nullptr;  // a library's operator reads a copy
  const Layout output = make_layout({input[0], spec.units}, DType::kFloat32, Order::kCanonical);
  return make(options, spec.bias, spec.activation, dense_sizes(spec.input, weights, spec.units), output, weights);
}

}  // namespace arbalest::engine::cuda
