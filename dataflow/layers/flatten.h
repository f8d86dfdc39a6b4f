// `flatten {}`: [n, c, h, w] -> [n, c*h*w].
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class FlattenLayer final : public Layer {
 public:
  std::string_view kind() const override { return "flatten"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  std::shared_ptr<const Layer> on_columns(const engine::ColumnBlock&) const override {
    return std::make_shared<FlattenLayer>();
  }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;
};

}  // namespace arbalest::dataflow
