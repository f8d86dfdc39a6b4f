// `softmax {}`: logits [n, classes] -> probabilities [n, classes].
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class SoftmaxLayer final : public Layer {
 public:
  std::string_view kind() const override { return "softmax"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;
};

}  // namespace arbalest::dataflow
