// `inner_product {}`: the product of each example's two vectors, [n, f] and [n, f] -> [n, 1].
#pragma once

#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

class InnerProductLayer final : public Layer {
 public:
  struct Options {
    bool has_bias = false;
    ParameterOptions bias{.initializer = kDefaultBias};
  };
  explicit InnerProductLayer(const Options& options) : options_(options) {}

  std::string_view kind() const override { return "inner_product"; }
  int input_count() const override { return 2; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  Options options_;
};

}  // namespace arbalest::dataflow
