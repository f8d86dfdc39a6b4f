// `relu {}`, `tanh {}`, `sigmoid {}`, `leaky_relu { slope: 0.01 }`, `gelu {}`, `silu {}`, `relu6 {}`,
// `hard_swish {}`: elementwise, any shape.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(const engine::ActivationFunction& function) : function_(function) {}

  std::string_view kind() const override;
  std::optional<engine::ActivationFunction> activation() const override { return function_; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override { return inputs[0]; }
  std::shared_ptr<const Layer> on_columns(const engine::ColumnBlock&) const override {
    return std::make_shared<ActivationLayer>(function_);
  }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  engine::ActivationFunction function_;
};

}  // namespace arbalest::dataflow
