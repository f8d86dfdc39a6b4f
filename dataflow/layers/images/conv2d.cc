#include "dataflow/layers/images/conv2d.h"

#include <fmt/format.h>

namespace arbalest::dataflow {

using engine::Shape;

Shape Conv2dLayer::output_shape(std::span<const Shape> inputs) const {
  const engine::Window window = place_window(inputs[0], options_.window, options_.padding_mode);
  const std::int64_t channels = inputs[0][1];
  if (channels % options_.groups != 0 || options_.filters % options_.groups != 0) {
    throw LayerError("groups", fmt::format("groups must divide the {} channels of its input and its {} filters; {} "
                                           "does not",
                                           channels, options_.filters, options_.groups));
  }
  return engine::window_output_shape(inputs[0], window, options_.filters);
}

std::vector<ParameterSpec> Conv2dLayer::parameters(std::span<const Shape> inputs) const {
  const std::int64_t channels = inputs[0][1] / options_.groups;  // channels that a filter reads
  const auto& kernel = options_.window.kernel;
  const std::int64_t taps = kernel.height * kernel.width;
  const Fan fan{channels * taps, options_.filters / options_.groups * taps};
  std::vector<ParameterSpec> specs{
      parameter_spec("weight", {options_.filters, channels, kernel.height, kernel.width}, fan, options_.weight)};
  if (options_.has_bias) specs.push_back(bias_spec({options_.filters}, fan, options_.bias));
  return specs;
}

std::int64_t Conv2dLayer::forward_flops(std::span<const Shape> inputs) const {
  const auto& kernel = options_.window.kernel;
  const std::int64_t per_output = 2 * inputs[0][1] / options_.groups * kernel.height * kernel.width +
                                  (options_.has_bias ? 1 : 0) + (activation_.has_value() ? 1 : 0);
  return output_shape(inputs).elements() * per_output;
}

engine::OperatorSpec Conv2dLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  const engine::Window window = place_window(inputs[0].shape(), options_.window, options_.padding_mode);
  return engine::Conv2dSpec{inputs[0], options_.filters, window, options_.has_bias, activation_, options_.groups};
}

}  // namespace arbalest::dataflow
