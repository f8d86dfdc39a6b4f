#include "dataflow/layers/flatten.h"

namespace arbalest::dataflow {

engine::Shape FlattenLayer::output_shape(std::span<const engine::Shape> inputs) const {
  return {inputs[0][0], inputs[0].elements_per_example()};
}

std::int64_t FlattenLayer::forward_flops(std::span<const engine::Shape>) const { return 0; }

engine::OperatorSpec FlattenLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::FlattenSpec{inputs[0]};
}

}  // namespace arbalest::dataflow
