// `squared_error { weight: 1 }`: a loss that compares predictions [n, 1] with labels [n] that are numbers.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class SquaredErrorLayer final : public Layer {
 public:
  // `weight`: weight in the sum of losses that training minimizes.
  explicit SquaredErrorLayer(float weight = 1.0F) : weight_(weight) {}

  std::string_view kind() const override { return "squared_error"; }
  LayerRole role() const override { return LayerRole::kLoss; }
  int input_count() const override { return 2; }
  engine::DType label_type() const override { return engine::DType::kFloat32; }
  Metrics metrics(std::span<const engine::Shape> inputs) const override;
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  float weight_;
};

}  // namespace arbalest::dataflow
