#include "dataflow/layers/dropout.h"

namespace arbalest::dataflow {

engine::OperatorSpec DropoutLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const {
  return engine::DropoutSpec{inputs[0], ratio_, key, block_};
}

}  // namespace arbalest::dataflow
