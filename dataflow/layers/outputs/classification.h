// Layers that compare logits [n, classes] with labels [n]: the loss `softmax_cross_entropy { weight: 0.4 }` and the
// metric `accuracy {}`. Inputs: logits, labels.
#pragma once

#include "dataflow/layer.h"

namespace arbalest::dataflow {

class SoftmaxCrossEntropyLayer final : public Layer {
 public:
  struct Options {
    float weight = 1.0F;           // weight in the sum of losses that training minimizes
    float label_smoothing = 0.0F;  // used in training only
  };
  SoftmaxCrossEntropyLayer() = default;
  explicit SoftmaxCrossEntropyLayer(const Options& options) : options_(options) {}

  std::string_view kind() const override { return "softmax_cross_entropy"; }
  LayerRole role() const override { return LayerRole::kLoss; }
  int input_count() const override { return 2; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  Options options_;
};

class AccuracyLayer final : public Layer {
 public:
  std::string_view kind() const override { return "accuracy"; }
  LayerRole role() const override { return LayerRole::kMetric; }
  int input_count() const override { return 2; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;
};

}  // namespace arbalest::dataflow
