// `padded_shortcut { channels: 32 stride: 2 }`: [n, c, h, w] -> [n, channels, ceil(h / stride), ceil(w / stride)]. It
// is the shortcut without parameters of residual networks.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class PaddedShortcutLayer final : public Layer {
 public:
  PaddedShortcutLayer(std::int64_t channels, std::int64_t stride) : channels_(channels), stride_(stride) {}

  std::string_view kind() const override { return "padded_shortcut"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> /*inputs*/) const override { return 0; }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  std::int64_t channels_;
  std::int64_t stride_;
};

}  // namespace arbalest::dataflow
