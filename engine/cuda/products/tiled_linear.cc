#include "engine/cuda/products/tiled_linear.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/linear.h"
#include "engine/cuda/products/convolution_products.h"

namespace arbalest::engine::cuda {

namespace {

// Of operators that are candidates, and of those that the rule takes.
constexpr std::int64_t kMostChannels = 512;
constexpr std::int64_t kMostExamples = 512;
constexpr std::int64_t kFewChannels = 64;
constexpr std::int64_t kFewExamples = 128;

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

Layout output_of(const Conv2dSpec& spec) {
  return make_layout(window_output_shape(spec.input.shape(), spec.window, spec.filters), DType::kFloat32,
                     Order::kCanonical);
}

Layout weights_of(const Conv2dSpec& spec, const PrepareOptions& options) {
  return weights_of(options, weights_shape(spec), Order::kCanonical);
}

Layout weights_of(const DenseSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const Order order = order_of(spec.input);
  return order == Order::kChannelsLast ? weights_of(options, input.with_batch(spec.units), order)
                                       : weights_of(options, {spec.units, input.elements_per_example()}, order);
}

std::optional<ConvolutionSizes> sizes_of(const Conv2dSpec& spec, const PrepareOptions& options) {
  return convolution_sizes(spec.input, weights_of(spec, options), output_of(spec), spec.window);
}

std::optional<ConvolutionSizes> sizes_of(const DenseSpec& spec, const PrepareOptions& options) {
  return dense_sizes(spec.input, weights_of(spec, options), spec.units);
}

template <typename Spec>
std::unique_ptr<Operator> make(const Spec& spec, const PrepareOptions& options, const Layout& output) {
  const std::optional<ConvolutionSizes> sizes = sizes_of(spec, options);
  ARBALEST_CHECK(sizes.has_value());
  return std::make_unique<TiledLinear>(options, spec.bias, spec.activation, *sizes, output, weights_of(spec, options));
}

std::int64_t most_channels(const Conv2dSpec& spec) { return std::max(spec.input.shape()[1], spec.filters); }

}  // namespace

bool has_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  return is_float32(spec.input, options) && spec.groups == 1 && most_channels(spec) <= kMostChannels &&
         sizes_of(spec, options).has_value();
}

bool has_tiled_operator(const DenseSpec& spec, const PrepareOptions& options) {
  if (!is_float32(spec.input, options) || spec.input.shape()[0] > kMostExamples) return false;
  // Weights in another order are copied, which a library's operator does.
  return order_of(weights_of(spec, options)) == order_of(spec.input) && sizes_of(spec, options).has_value();
}

bool prefers_tiled_operator(const Conv2dSpec& spec) { return most_channels(spec) <= kFewChannels; }
bool prefers_tiled_operator(const DenseSpec& spec) { return spec.input.shape()[0] <= kFewExamples; }

std::unique_ptr<Operator> make_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options) {
  return make(spec, options, output_of(spec));
}

std::unique_ptr<Operator> make_tiled_operator(const DenseSpec& spec, const PrepareOptions& options) {
  return make(spec, options, make_layout({spec.input.shape()[0], spec.units}, DType::kFloat32, Order::kCanonical));
}

}  // namespace arbalest::engine::cuda
