// Layers that compare logits [n, classes] with labels [n]: the loss `softmax_cross_entropy { weight: 0.4 }` and the
// metrics `accuracy { top_k: 3 }`. Inputs: logits, labels.
#pragma once

#include "dataflow/layers/layer.h"

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
  Metrics metrics(std::span<const engine::Shape> inputs) const override;
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;
  std::shared_ptr<const Layer> with_counted_ranks(const std::vector<std::int32_t>& top) const override;

 private:
  Options options_;
  std::vector<std::int32_t> top_;  // engine::SoftmaxCrossEntropySpec::top
};

// The accuracy, and the share of examples whose label is among the k largest logits, for each k of `top_k`.
class AccuracyLayer final : public Layer {
 public:
  static constexpr int kMaxTopK = engine::kMaxRankCounts - 1;  // the most numbers in top_k

  // Top-5 accuracy, which the terminal shows for models with many classes only.
  AccuracyLayer() = default;
  // `top_k`: different numbers above 1, at most kMaxTopK of them.
  explicit AccuracyLayer(std::vector<std::int32_t> top_k) : top_k_(std::move(top_k)), is_chosen_(true) {}

  std::string_view kind() const override { return "accuracy"; }
  LayerRole role() const override { return LayerRole::kMetric; }
  int input_count() const override { return 2; }
  Metrics metrics(std::span<const engine::Shape> inputs) const override;
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  std::vector<std::int32_t> counted_ranks() const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  std::vector<std::int32_t> top_k_ = {5};
  bool is_chosen_ = false;  // whether the job names the numbers
};

}  // namespace arbalest::dataflow
