// `dropout { ratio: 0.5 }`: any shape; the identity at inference.
#pragma once

#include "dataflow/layer.h"

namespace arbalest::dataflow {

class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(float ratio) : ratio_(ratio) {}

  std::string_view kind() const override { return "dropout"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override { return inputs[0]; }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  float ratio_;
};

}  // namespace arbalest::dataflow
