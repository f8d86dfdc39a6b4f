#include "dataflow/layers/inner_product.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape InnerProductLayer::output_shape(std::span<const Shape> inputs) const {
  if (inputs[0].rank() != 2 || inputs[0] != inputs[1]) {
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "multiplies two vectors of one length, not {} and {} per example; embeddings may have one width, and "
                 "flatten {{}} makes a vector of an image",
                 to_string(inputs[0].with_batch(1)), to_string(inputs[1].with_batch(1)));
  }
  return {inputs[0][0], 1};
}

std::vector<ParameterSpec> InnerProductLayer::parameters(std::span<const Shape> inputs) const {
  if (!options_.has_bias) return {};
  return {bias_spec({1}, {inputs[0][1], 1}, options_.bias)};
}

std::int64_t InnerProductLayer::forward_flops(std::span<const Shape> inputs) const {
  return 2 * inputs[0].elements() + (options_.has_bias ? inputs[0][0] : 0);
}

engine::OperatorSpec InnerProductLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::InnerProductSpec{inputs[0], inputs[1], options_.has_bias};
}

}  // namespace arbalest::dataflow
