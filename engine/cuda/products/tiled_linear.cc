#include "engine/cuda/products/tiled_linear.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/operators/bias.h"
#include "engine/cuda/operators/linear.h"
#include "engine/cuda/products/convolution_products.h"

namespace arbalest::engine::cuda {

namespace {

// These limits make an operator a candidate.
constexpr std::int64_t kMostChannels = 512;
constexpr std::int64_t kMostExamples = 512;
// The rule takes it within these.
constexpr std::int64_t kFewChannels = 64;
constexpr std::int64_t kFewExamples = 128;

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
  // `read`: the input as the kernels read it; a copy if `input` has another type.
  TiledLinear(const PrepareOptions& options, bool bias, std::optional<ActivationFunction> activation,
              const ConvolutionSizes& sizes, const Layout& input, const Layout& read, Layout output,
              const Layout& weights)
      : LinearOperator(options, bias, activation, Kernels::kOwn),
        sizes_(sizes),
        products_(products_in(options.precision)),
        has_tensor_cores_(options.precision != Precision::kFloat32),
        input_shape_(input.shape()),
        input_as_it_lies_(arrangement_of(input)),
        input_as_read_(arrangement_of(read)),
        copies_input_(input.dtype() != read.dtype()) {
    traits_.output = std::move(output);
    set_parameters(options, weights, sizes.filters);
    ARBALEST_CHECK(!copies_input_ || !input_gradient_);
    traits_.backward_reads_inputs = training_ && !copies_input_;
    if (training_ && copies_input_) traits_.saved_bytes = aligned(read.bytes());
    if (!training_ && copies_input_) products_at_ = aligned(read.bytes());
    traits_.adds_to_gradient = input_gradient_;
    traits_.overwrites_output_gradient = traits_.backward_reads_output && has_tensor_cores_;
    std::size_t scratch = products_.output_scratch_bytes(sizes);
    if (training_) scratch = std::max(scratch, products_.gradient_scratch_bytes(sizes, input_gradient_));
    if (training_ && has_tensor_cores_) scratch = std::max(scratch, column_sum_bytes(output_rows()));
    traits_.scratch_bytes = products_at_ + aligned(scratch);
  }

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override {
    const void* read = of.input;
    if (copies_input_) {
      void* copy = training_ ? of.saved : of.scratch;
      transpose(of.input, input_as_it_lies_, copy, input_as_read_, input_shape_, context.stream);
      read = copy;
    }
    products_.enqueue_output(sizes_,
                             {.input = read,
                              .weights = of.weights,
                              .bias = of.bias,
                              .activation = activation_,
                              .output = of.output,
                              .scratch = of.scratch + products_at_},
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
  const Shape input_shape_;
  const Arrangement input_as_it_lies_;
  const Arrangement input_as_read_;
  const bool copies_input_;      // which forward saves for backward
  std::size_t products_at_ = 0;  // in scratch, where inference has the copy before them
};

// Type of the tensors of a precision.
DType type_in(Precision precision) { return precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32; }

Layout weights_of(const PrepareOptions& options, const Shape& shape, Order order) {
  return options.parameters.empty() ? make_layout(shape, DType::kFloat32, order) : options.parameters[0];
}

// The input as the kernels read it: that of a network's first layer is float32 in every precision.
Layout read_layout(const Layout& input, Precision precision, Order order) {
  if (input.dtype() == type_in(precision)) return input;
  return make_layout(input.shape(), type_in(precision), input.shape().rank() == 4 ? order : Order::kCanonical);
}

// Nobody wants the gradient of a network's input, so there are no kernels that would convert it back.
bool reads_input(const Layout& input, const PrepareOptions& options) {
  if (input.dtype() == type_in(options.precision)) return true;
  return input.dtype() == DType::kFloat32 && (options.mode == OperatorMode::kInference || !options.input_gradient);
}

struct Tensors {
  Layout read;
  Layout weights;
  Layout output;
};

Tensors tensors_of(const Conv2dSpec& spec, const PrepareOptions& options) {
  const Order order = order_of_convolutions(options.precision);
  return {read_layout(spec.input, options.precision, order), weights_of(options, weights_shape(spec), order),
          make_layout(window_output_shape(spec.input.shape(), spec.window, spec.filters), type_in(options.precision),
                      order)};
}

Tensors tensors_of(const DenseSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const Order order = order_of(spec.input);
  const Shape weights =
      order == Order::kChannelsLast ? input.with_batch(spec.units) : Shape{spec.units, input.elements_per_example()};
  return {read_layout(spec.input, options.precision, order), weights_of(options, weights, order),
          make_layout({input[0], spec.units}, type_in(options.precision), Order::kCanonical)};
}

std::optional<ConvolutionSizes> sizes_of(const Conv2dSpec& spec, const Tensors& of) {
  return convolution_sizes(of.read, of.weights, of.output, spec.window);
}

std::optional<ConvolutionSizes> sizes_of(const DenseSpec& spec, const Tensors& of) {
  return dense_sizes(of.read, of.weights, spec.units);
}

template <typename Spec>
std::unique_ptr<Operator> make(const Spec& spec, const PrepareOptions& options) {
  const Tensors tensors = tensors_of(spec, options);
  const std::optional<ConvolutionSizes> sizes = sizes_of(spec, tensors);
  ARBALEST_CHECK(sizes.has_value());
  return std::make_unique<TiledLinear>(options, spec.bias, spec.activation, *sizes, spec.input, tensors.read,
                                       tensors.output, tensors.weights);
}

std::int64_t most_channels(const Conv2dSpec& spec) { return std::max(spec.input.shape()[1], spec.filters); }

}  // namespace

bool has_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  return reads_input(spec.input, options) && spec.groups == 1 && most_channels(spec) <= kMostChannels &&
         sizes_of(spec, tensors_of(spec, options)).has_value();
}

bool has_tiled_operator(const DenseSpec& spec, const PrepareOptions& options) {
  if (!reads_input(spec.input, options) || spec.input.shape()[0] > kMostExamples) return false;
  const Tensors tensors = tensors_of(spec, options);
  // A library's operator reads a copy of weights in another order.
  return order_of(tensors.weights) == order_of(spec.input) && sizes_of(spec, tensors).has_value();
}

bool prefers_tiled_operator(const Conv2dSpec& spec) { return most_channels(spec) <= kFewChannels; }
bool prefers_tiled_operator(const DenseSpec& spec) { return spec.input.shape()[0] <= kFewExamples; }

std::unique_ptr<Operator> make_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  return make(spec, options);
}

std::unique_ptr<Operator> make_tiled_operator(const DenseSpec& spec, const PrepareOptions& options) {
  return make(spec, options);
}

}  // namespace arbalest::engine::cuda
