// `layer_norm { epsilon: 1e-5 affine: true }`: [n, c, h, w] or [n, f], each example over all of its features
// (engine/ops/layer_norm.h). Its parameters have PyTorch's names, "weight" and "bias".
#pragma once

#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

class LayerNormLayer final : public Layer {
 public:
  explicit LayerNormLayer(float epsilon, bool affine = true) : epsilon_(epsilon), affine_(affine) {}

  std::string_view kind() const override { return "layer_norm"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override {
    return shape_of_images_or_features(inputs[0]);
  }
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override {
    if (!affine_) return {};
    const engine::Shape example = engine::example_shape(inputs[0]);
    const Initializer one{.kind = Initializer::Kind::kConstant, .value = 1.0F};
    std::vector<ParameterSpec> specs{parameter_spec("weight", example, {}, {one}),
                                     parameter_spec("bias", example, {}, {kDefaultBias})};
    for (ParameterSpec& spec : specs) spec.kind = ParameterKind::kNormalization;
    return specs;
  }
  // Counts per number: sum, difference, square and its sum, product, scale and shift.
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override {
    return inputs[0].elements() * (affine_ ? 7 : 5);
  }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t /*key*/) const override {
    return engine::LayerNormSpec{inputs[0], epsilon_, affine_};
  }

 private:
  const float epsilon_;
  const bool affine_;
};

}  // namespace arbalest::dataflow
