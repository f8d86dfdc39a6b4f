// The part of a dense layer that one device of a split model has. Columns: [n, features] -> [n, units / P], with a part
// of the bias. Rows: [n, features / P] -> [n, units], to be added over devices; whoever adds them adds the bias once.
#pragma once

#include "dataflow/layers/dense.h"

namespace arbalest::dataflow {

class DenseShardLayer final : public Layer {
 public:
  // `features`: of the whole layer's input. The split axis must be a multiple of the block's ranks.
  DenseShardLayer(const DenseLayer::Options& options, std::int64_t features, const engine::ColumnBlock& block,
                  std::optional<engine::ActivationFunction> activation = std::nullopt)
      : options_(options), features_(features), block_(block), activation_(activation) {}

  std::string_view kind() const override { return "dense"; }
  std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& f) const override;
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  bool splits_columns() const { return options_.split == DenseSplit::kColumns; }
  bool has_bias() const { return options_.has_bias && splits_columns(); }
  std::int64_t units() const { return splits_columns() ? options_.units / block_.ranks : options_.units; }

  DenseLayer::Options options_;
  std::int64_t features_;
  engine::ColumnBlock block_;
  std::optional<engine::ActivationFunction> activation_;
};

}  // namespace arbalest::dataflow
