// `batch_norm { epsilon: 1e-5 momentum: 0.1 }`: [n, c, h, w] or [n, f], channel by channel or feature by feature
// (engine/ops/batch_norm.h). Its parameters are called as PyTorch calls them: weight, bias, running_mean, running_var.
#pragma once

#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

class BatchNormLayer final : public Layer {
 public:
  struct Options {
    float epsilon = 1e-5F;
    float momentum = 0.1F;  // weight of the newest mini-batch in the running statistics
    ParameterOptions scale{.initializer = {.kind = Initializer::Kind::kConstant, .value = 1.0F}};
    ParameterOptions shift{.initializer = {.kind = Initializer::Kind::kConstant}};
  };
  // Operations that fusion has added after the normalization.
  enum class Behind { kNothing, kRelu, kAddendAndRelu };
  // frozen_statistics: training normalizes with the running statistics and does not change them.
  explicit BatchNormLayer(const Options& options, Behind behind = Behind::kNothing, bool frozen_statistics = false)
      : options_(options), behind_(behind), frozen_statistics_(frozen_statistics) {}

  std::string_view kind() const override { return "batch_norm"; }
  float epsilon() const noexcept { return options_.epsilon; }
  std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& f) const override {
    return with(Behind::kRelu, f.kind);
  }
  std::shared_ptr<const Layer> with_addend(engine::ActivationKind f) const override {
    return with(Behind::kAddendAndRelu, f);
  }
  std::shared_ptr<const Layer> with_frozen_statistics() const override {
    return std::make_shared<BatchNormLayer>(options_, behind_, true);
  }
  int input_count() const override { return behind_ == Behind::kAddendAndRelu ? 2 : 1; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  std::shared_ptr<const Layer> with(Behind behind, engine::ActivationKind f) const {
    if (behind_ != Behind::kNothing || f != engine::ActivationKind::kRelu) return nullptr;
    return std::make_shared<BatchNormLayer>(options_, behind, frozen_statistics_);
  }

  Options options_;
  Behind behind_;
  bool frozen_statistics_;
};

}  // namespace arbalest::dataflow
