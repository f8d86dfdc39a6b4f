#include "dataflow/split/dense_shard.h"

namespace arbalest::dataflow {

using engine::Shape;

std::shared_ptr<const Layer> DenseShardLayer::with_activation(const engine::ActivationFunction& f) const {
  // Rows: the function applies to the sum over devices.
  if (!splits_columns() || activation_.has_value() || engine::differentiates_input(f.kind)) return nullptr;
  return std::make_shared<DenseShardLayer>(options_, features_, block_, f);
}

Shape DenseShardLayer::output_shape(std::span<const Shape> inputs) const { return {inputs[0][0], units()}; }

std::vector<ParameterSpec> DenseShardLayer::parameters(std::span<const Shape>) const {
  const Fan fan{features_, options_.units};  // of the whole layer, so that initial values do not depend on the split
  const int axis = splits_columns() ? 0 : 1;
  const std::int64_t width = (splits_columns() ? options_.units : features_) / block_.ranks;
  const Shape shape = splits_columns() ? Shape{width, features_} : Shape{options_.units, width};
  std::vector<ParameterSpec> specs{parameter_spec("weight", shape, fan, options_.weight)};
  specs[0].part = ParameterPart{{options_.units, features_}, axis, block_.rank * width};
  if (has_bias()) {
    specs.push_back(bias_spec({width}, fan, options_.bias));
    specs[1].part = ParameterPart{{options_.units}, 0, block_.rank * width};
  }
  return specs;
}

std::int64_t DenseShardLayer::forward_flops(std::span<const Shape> inputs) const {
  const std::int64_t per_output =
      2 * inputs[0].elements_per_example() + (has_bias() ? 1 : 0) + (activation_.has_value() ? 1 : 0);
  return inputs[0][0] * units() * per_output;
}

engine::OperatorSpec DenseShardLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::DenseSpec{inputs[0], units(), has_bias(), activation_};
}

}  // namespace arbalest::dataflow
