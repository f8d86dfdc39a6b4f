// `global_average_pool {}`: the mean of each channel, [n, c, h, w] -> [n, c, 1, 1].
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class GlobalAveragePoolLayer final : public Layer {
 public:
  std::string_view kind() const override { return "global_average_pool"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;
};

}  // namespace arbalest::dataflow
