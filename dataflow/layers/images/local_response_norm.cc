#include "dataflow/layers/images/local_response_norm.h"

#include "dataflow/layers/images/image_shape.h"

namespace arbalest::dataflow {

engine::Shape LocalResponseNormLayer::output_shape(std::span<const engine::Shape> inputs) const {
  check_images(inputs[0]);
  return inputs[0];
}

// Counts a square and a sum per neighbor; then scale, power and product.
std::int64_t LocalResponseNormLayer::forward_flops(std::span<const engine::Shape> inputs) const {
  return (2 * options_.size + 4) * inputs[0].elements();
}

engine::OperatorSpec LocalResponseNormLayer::operator_spec(std::span<const engine::Layout> inputs,
                                                           std::uint32_t) const {
  return engine::LocalResponseNormSpec{inputs[0], options_.size, options_.alpha, options_.beta, options_.k};
}

}  // namespace arbalest::dataflow
