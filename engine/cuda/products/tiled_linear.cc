#include "engine/cuda/products/tiled_linear.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/bias.h"
#include "engine/cuda/operators/linear.h"
#include "engine/cuda/products/convolution_products.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::int64_t kMostChannels = 64;
constexpr std::int64_t kMostExamples = 128;

const ConvolutionProducts& products_in(Precision precision) {
  switch (precision) {
    case Precision::kFloat32: return float32_products();
    case Precision::kTensorFloat32: return tensor_float32_products();
    case Precision::kBFloat16: break;
  }
  return bfloat16_products();
}

// Without tensor cores, a product also computes the bias's gradient and reads its factors through the activation.
// Tensor cores would round the terms of that gradient, so kernels before the product do both.
class TiledLinear final : public LinearOperator {
 public:
  TiledLinear(const PrepareOptions& options, bool bias, std::optional<ActivationFunction> activation,
              const ConvolutionSizes& sizes, Layout output, const Layout& weights)
      : LinearOperator(options, bias, activation, Kernels::kOwn),
        sizes_(sizes),
        products_(products_in(options.precision)),
        has_tensor_cores_(options.precision != Precision::kFloat32) {
    traits_.output = std::move(output);
    set_parameters(options, weights, sizes.filters);
    traits_.backward_reads_inputs = training_;
    traits_.adds_to_gradient = input_gradient_;
    traits_.overwrites_output_gradient = traits_.backward_reads_output && has_tensor_cores_;
    std::size_t scratch = products_.output_scratch_bytes(sizes);
    if (training_) scratch = std::max(scratch, products_.gradient_scratch_bytes(sizes, input_gradient_));
    if (training_ && has_tensor_cores_) scratch = std::max(scratch, column_sum_bytes(output_rows()));
    traits_.scratch_bytes = aligned(scratch);
  }

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override {
    products_.enqueue_output(sizes_,
                             {.input = of.input,
                              .weights = of.weights,
                              .bias = of.bias,
                              .activation = activation_,
                              .output = of.output,
                              .scratch = of.scratch},
                             context);
  }

  void run_backward(const LinearBackward& of, const StreamContext& context) const override {
    ConvolutionGradients gradients{.output_gradient = of.output_gradient,
                                   .output = of.output,
                                   .activation = activation_,
                                   .input = of.read,
                                   .weights = of.weights,
                                   .weights_gradient = of.weights_gradient,
                                   .bias_gradient = of.bias_gradient,
                                   .input_gradient = of.input_gradient,
                                   .addend = of.addend,
                                   .scratch = of.scratch};
    if (has_tensor_cores_) {
      begin_gradient(of.output_gradient, of.output, activation_, of.bias_gradient, output_rows(),
                     reinterpret_cast<float*>(of.scratch), context.stream);
      gradients.activation.reset();
      gradients.bias_gradient = nullptr;
    }
    products_.enqueue_gradients(sizes_, gradients, context);
  }

  // The output as a matrix [pixels, filters].
  Rows output_rows() const {
    const std::int64_t pixels = std::int64_t{sizes_.rows.output} * sizes_.columns.output;
    return {sizes_.output_pixels(), sizes_.filters, type_, sizes_.output.pixel == 1 ? pixels : 1};
  }

  const ConvolutionSizes sizes_;
  const ConvolutionProducts& products_;
  const bool has_tensor_cores_;
};

// Type of the tensors of a precision, and their order: without tensor cores, neighboring threads read neighboring
// pixels.
DType type_in(Precision precision) { return precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32; }
Order order_in(Precision precision) {
  return precision == Precision::kFloat32 ? Order::kCanonical : Order::kChannelsLast;
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
  const DType type = type_in(options.precision);
  const Order order = order_in(options.precision);
  if (spec.input.dtype() != type || spec.groups != 1) return nullptr;
  if (std::max(input[1], spec.filters) > kMostChannels) return nullptr;
  const Layout output = make_layout(window_output_shape(input, spec.window, spec.filters), type, order);
  const Layout weights = weights_of(options, weights_shape(spec), order);
  return make(options, spec.bias, spec.activation, convolution_sizes(spec.input, weights, output, spec.window), output,
              weights);
}

std::unique_ptr<Operator> make_tiled_operator(const DenseSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const DType type = type_in(options.precision);
  if (spec.input.dtype() != type || input[0] > kMostExamples) return nullptr;
  const Order order = order_of(spec.input);
  const Layout weights = order == Order::kChannelsLast
                             ? weights_of(options, input.with_batch(spec.units), order)
                             : weights_of(options, {spec.units, input.elements_per_example()}, order);
  if (order_of(weights) != order) return nullptr;  // a library's operator reads a copy
  const Layout output = make_layout({input[0], spec.units}, type, Order::kCanonical);
  return make(options, spec.bias, spec.activation, dense_sizes(spec.input, weights, spec.units), output, weights);
}

}  // namespace arbalest::engine::cuda
