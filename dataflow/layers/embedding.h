// `embedding { rows: 1000 width: 16 column: 0 }`: ids [n, columns] -> [n, width], one row of the table per example.
#pragma once

#include "dataflow/layers/layer.h"
#include "dataflow/layers/parameter_options.h"

namespace arbalest::dataflow {

class EmbeddingLayer final : public Layer {
 public:
  struct Options {
    std::int64_t rows = 0;
    std::int64_t width = 0;
    std::int64_t column = 0;
    ParameterOptions weight{.initializer = kDefaultWeight};
  };
  explicit EmbeddingLayer(const Options& options) : options_(options) {}

  std::string_view kind() const override { return "embedding"; }
  std::string width_field() const override { return "width"; }
  std::optional<LookUp> look_up() const override { return LookUp{options_.column, options_.rows}; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> /*inputs*/) const override { return 0; }
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  Options options_;
};

}  // namespace arbalest::dataflow
