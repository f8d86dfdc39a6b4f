// `conv { filters: 20 kernel: 5 stride: 1 padding: 0 dilation: 1 groups: 1 }`: [n, c, h, w] -> [n, filters, h', w'].
#pragma once

#include "dataflow/layers/images/image_shape.h"
#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

class Conv2dLayer final : public Layer {
 public:
  struct Options {
    std::int64_t filters = 0;
    engine::Window window;
    PaddingMode padding_mode = PaddingMode::kExplicit;
    std::int64_t groups = 1;
    bool has_bias = true;
    ParameterOptions weight{.initializer = kDefaultWeight};
    ParameterOptions bias{.initializer = kDefaultBias};
  };
  explicit Conv2dLayer(const Options& options, std::optional<engine::ActivationFunction> activation = std::nullopt)
      : options_(options), activation_(activation) {}

  std::string_view kind() const override { return "conv"; }
  std::string width_field() const override { return "filters"; }
  std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& f) const override {
    const bool is_possible = !activation_.has_value() && !engine::differentiates_input(f.kind);
    return is_possible ? std::make_shared<Conv2dLayer>(options_, f) : nullptr;
  }
  // Returns a layer that differs from this one only in having a bias.
  std::shared_ptr<const Layer> with_bias() const {
    Options options = options_;
    options.has_bias = true;
    return std::make_shared<Conv2dLayer>(options, activation_);
  }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  Options options_;
  std::optional<engine::ActivationFunction> activation_;  // applied to the output
};

}  // namespace arbalest::dataflow
