// Layers that join branches. `add {}`: the sum of two tensors of equal shape. `concat {}`: two or more tensors side by
// side along channels (or features), in the order of the inputs.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class AddLayer final : public Layer {
 public:
  explicit AddLayer(std::optional<engine::ActivationKind> activation = std::nullopt) : activation_(activation) {}

  std::string_view kind() const override { return "add"; }
  int input_count() const override { return 2; }
  std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& f) const override;
  std::optional<engine::ActivationKind> activation_of_sum() const override { return activation_; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  std::optional<engine::ActivationKind> activation_;  // fused after the sum
};

class ConcatLayer final : public Layer {
 public:
  std::string_view kind() const override { return "concat"; }
  int input_count() const override { return 2; }
  bool takes_more_inputs() const override { return true; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> /*inputs*/) const override { return 0; }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;
};

}  // namespace arbalest::dataflow
