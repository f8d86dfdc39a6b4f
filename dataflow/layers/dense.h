// `dense { units: 500 }`: [n, ...] -> [n, units].
#pragma once

#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

// The way in which the devices of a run divide a layer's weights (docs/parallelism.md).
enum class DenseSplit {
  kNone,
  kColumns,  // each device computes some of the outputs
  kRows      // each device uses some of the inputs
};

class DenseLayer final : public Layer {
 public:
  struct Options {
    std::int64_t units = 0;
    bool has_bias = true;
    ParameterOptions weight{.initializer = kDefaultWeight};
    ParameterOptions bias{.initializer = kDefaultBias};
    DenseSplit split = DenseSplit::kNone;  // over several devices; one device always has the whole layer
  };
  explicit DenseLayer(const Options& options, std::optional<engine::ActivationFunction> activation = std::nullopt)
      : options_(options), activation_(activation) {}

  const Options& options() const noexcept { return options_; }

  std::string_view kind() const override { return "dense"; }
  std::string width_field() const override { return "units"; }
  std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& f) const override {
    const bool is_possible = !activation_.has_value() && !engine::differentiates_input(f.kind);
    return is_possible ? std::make_shared<DenseLayer>(options_, f) : nullptr;
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
