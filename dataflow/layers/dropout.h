// `dropout { ratio: 0.5 }`: any shape; the identity at inference.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(float ratio, std::optional<engine::ColumnBlock> block = std::nullopt)
      : ratio_(ratio), block_(block) {}

  std::string_view kind() const override { return "dropout"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override { return inputs[0]; }
  std::shared_ptr<const Layer> on_columns(const engine::ColumnBlock& block) const override {
    return std::make_shared<DropoutLayer>(ratio_, block);
  }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  float ratio_;
  std::optional<engine::ColumnBlock> block_;
};

}  // namespace arbalest::dataflow
