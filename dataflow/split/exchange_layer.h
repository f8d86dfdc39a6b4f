// A layer that a split model has between its devices (engine/ops/exchange.h). No job file names it.
#pragma once

#include <optional>

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

class ExchangeLayer final : public Layer {
 public:
  // `bias`: the parameter that kScatterSums adds.
  ExchangeLayer(engine::ExchangeKind kind, engine::ExchangeMember place, std::optional<ParameterSpec> bias = {})
      : kind_(kind), place_(std::move(place)), bias_(std::move(bias)) {}

  std::string_view kind() const override { return "exchange"; }
  engine::Shape output_shape(std::span<const engine::Shape> inputs) const override;
  std::vector<ParameterSpec> parameters(std::span<const engine::Shape> inputs) const override;
  std::int64_t forward_flops(std::span<const engine::Shape> inputs) const override;
  engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const override;

 private:
  engine::ExchangeKind kind_;
  engine::ExchangeMember place_;
  std::optional<ParameterSpec> bias_;
};

}  // namespace arbalest::dataflow
