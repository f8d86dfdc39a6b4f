// `relu {}`, `tanh {}`, `sigmoid {}`: elementwise, any shape.
#pragma once

#include "dataflow/layer.h"

namespace arbalest::dataflow {

class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(engine::ActivationKind kind) : kind_(kind) {}

  std::string_view kind() const override;
  std::optional<engine::ActivationKind> activation() const override { return kind_; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override { return inputs[0]; }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  engine::ActivationKind kind_;
};

}  // namespace arbalest::dataflow
