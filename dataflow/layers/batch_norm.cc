#include "dataflow/layers/batch_norm.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape BatchNormLayer::output_shape(std::span<const Shape> inputs) const {
  return shape_of_images_or_features(inputs[0]);
}

std::vector<ParameterSpec> BatchNormLayer::parameters(std::span<const Shape> inputs) const {
  const Shape channels{inputs[0][1]};
  std::vector<ParameterSpec> specs{parameter_spec("weight", channels, {}, options_.scale),
                                   parameter_spec("bias", channels, {}, options_.shift)};
  for (ParameterSpec& spec : specs) spec.kind = ParameterKind::kNormalization;
  specs.push_back(statistic_spec("running_mean", channels, 0.0F, options_.momentum));
  specs.push_back(statistic_spec("running_var", channels, 1.0F, options_.momentum));
  return specs;
}

// Counts per number: sum, square and its sum, difference, product, scale and shift.
std::int64_t BatchNormLayer::forward_flops(std::span<const Shape> inputs) const {
  const int behind = behind_ == Behind::kNothing ? 0 : behind_ == Behind::kRelu ? 1 : 2;
  return inputs[0].elements() * (7 + behind);
}

engine::OperatorSpec BatchNormLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  engine::BatchNormSpec spec{.input = inputs[0],
                             .epsilon = options_.epsilon,
                             .relu = behind_ != Behind::kNothing,
                             .frozen_statistics = frozen_statistics_};
  if (behind_ == Behind::kAddendAndRelu) spec.addend = inputs[1];
  return spec;
}

}  // namespace arbalest::dataflow
