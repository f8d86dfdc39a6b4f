#include "dataflow/layers/dense.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape DenseLayer::output_shape(std::span<const Shape> inputs) const { return {inputs[0][0], options_.units}; }

std::vector<ParameterSpec> DenseLayer::parameters(std::span<const Shape> inputs) const {
  const std::int64_t features = inputs[0].elements_per_example();
  const Fan fan{features, options_.units};
  std::vector<ParameterSpec> specs{parameter_spec("weight", {options_.units, features}, fan, options_.weight)};
  if (options_.has_bias) specs.push_back(bias_spec({options_.units}, fan, options_.bias));
  return specs;
}

std::int64_t DenseLayer::forward_flops(std::span<const Shape> inputs) const {
  const std::int64_t per_output =
      2 * inputs[0].elements_per_example() + (options_.has_bias ? 1 : 0) + (activation_.has_value() ? 1 : 0);
  return inputs[0][0] * options_.units * per_output;
}

engine::OperatorSpec DenseLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::DenseSpec{inputs[0], options_.units, options_.has_bias, activation_};
}

}  // namespace arbalest::dataflow
