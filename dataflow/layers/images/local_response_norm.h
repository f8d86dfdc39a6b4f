// `local_response_norm { size: 5 alpha: 1e-4 beta: 0.75 k: 1 }`: images [n, c, h, w] to images of the same shape.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class LocalResponseNormLayer final : public Layer {
 public:
  struct Options {
    std::int64_t size = 5;  // number of channels; odd
    float alpha = 1e-4F;
    float beta = 0.75F;
    float k = 1.0F;
  };
  explicit LocalResponseNormLayer(const Options& options) : options_(options) {}

  std::string_view kind() const override { return "local_response_norm"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  Options options_;
};

}  // namespace arbalest::dataflow
