// `max_pool { kernel: 2 stride: 2 ceil_mode: false }` and `average_pool { ... }`: [n, c, h, w] -> [n, c, h', w'].
#pragma once

#include "dataflow/layers/images/image_shape.h"
#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class Pool2dLayer final : public Layer {
 public:
  struct Options {
    engine::PoolKind kind = engine::PoolKind::kMax;
    engine::Window window;
    PaddingMode padding_mode = PaddingMode::kExplicit;
    // Whether the last window may end outside the padded image; it must begin on the image or its leading padding.
    bool ceil_mode = false;
    // Whether an average counts padding as zeros. Refused if a window of ceil_mode ends outside the padding.
    bool count_padding = false;
  };
  explicit Pool2dLayer(const Options& options) : options_(options) {}

  std::string_view kind() const override;
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  // Throws kInvalidJob if `input` is not images, the window does not fit into it, or the padding is not smaller than
  // the kernel.
  engine::Window place(const engine::Shape& input) const;

  Options options_;
};

}  // namespace arbalest::dataflow
