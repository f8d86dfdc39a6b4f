#include "dataflow/layers/conv2d.h"

#include "dataflow/layers/image_shape.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape Conv2dLayer::output_shape(std::span<const Shape> inputs) const {
  const engine::Extent2d extent = window_output(inputs[0], options_.window);
  return {inputs[0][0], options_.filters, extent.height, extent.width};
}

std::vector<ParameterSpec> Conv2dLayer::parameters(std::span<const Shape> inputs) const {
  const std::int64_t channels = inputs[0][1];
  const auto& kernel = options_.window.kernel;
  const std::int64_t taps = kernel.height * kernel.width;
  const Fan fan{channels * taps, options_.filters * taps};
  std::vector<ParameterSpec> specs{
      parameter_spec("weight", {options_.filters, channels, kernel.height, kernel.width}, fan, options_.weight)};
  if (options_.has_bias) specs.push_back(bias_spec({options_.filters}, fan, options_.bias));
  return specs;
}

std::int64_t Conv2dLayer::forward_flops(std::span<const Shape> inputs) const {
  const auto& kernel = options_.window.kernel;
  const std::int64_t per_output =
      2 * inputs[0][1] * kernel.height * kernel.width + (options_.has_bias ? 1 : 0) + (activation_.has_value() ? 1 : 0);
  return output_shape(inputs).elements() * per_output;
}

engine::OperatorSpec Conv2dLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::Conv2dSpec{inputs[0], options_.filters, options_.window, options_.has_bias, activation_};
}

}  // namespace arbalest::dataflow
