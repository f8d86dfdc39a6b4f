// `prelu {}`: [n, c, h, w] or [n, c], with one trained slope for each channel or feature (engine/ops/prelu.h). Its
// parameter has PyTorch's name, "weight".
#pragma once

#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

class PReluLayer final : public Layer {
 public:
  explicit PReluLayer(const ParameterOptions& weight) : weight_(weight) {}

  std::string_view kind() const override { return "prelu"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override {
    return shape_of_images_or_features(inputs[0]);
  }
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override {
    return {parameter_spec("weight", {inputs[0][1]}, {}, weight_)};
  }
  // Counts per number: comparison and product.
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override { return inputs[0].elements() * 2; }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t /*key*/) const override {
    return engine::PReluSpec{inputs[0]};
  }

 private:
  const ParameterOptions weight_;
};

}  // namespace arbalest::dataflow
