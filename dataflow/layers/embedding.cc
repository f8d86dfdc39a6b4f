#include "dataflow/layers/embedding.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape EmbeddingLayer::output_shape(std::span<const Shape> inputs) const { return {inputs[0][0], options_.width}; }

// A look-up sums nothing, so both fans are the row's width.
std::vector<ParameterSpec> EmbeddingLayer::parameters(std::span<const Shape> /*inputs*/) const {
  const Fan fan{options_.width, options_.width};
  return {parameter_spec("weight", {options_.rows, options_.width}, fan, options_.weight)};
}

engine::OperatorSpec EmbeddingLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::EmbeddingSpec{
      .ids = inputs[0], .column = options_.column, .rows = options_.rows, .width = options_.width};
}

}  // namespace arbalest::dataflow
