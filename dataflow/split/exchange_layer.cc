#include "dataflow/split/exchange_layer.h"

namespace arbalest::dataflow {

using engine::ExchangeKind;
using engine::Shape;

Shape ExchangeLayer::output_shape(std::span<const Shape> inputs) const {
  const std::int64_t ranks = place_.ranks();
  const std::int64_t rows = inputs[0][0];
  const std::int64_t columns = inputs[0][1];
  switch (kind_) {
    case ExchangeKind::kGather: return {rows * ranks, columns};
    case ExchangeKind::kScatterSums: return {rows / ranks, columns};
    case ExchangeKind::kToColumns: return {rows * ranks, columns / ranks};
    case ExchangeKind::kToExamples: break;
  }
  return {rows / ranks, columns * ranks};
}

std::vector<ParameterSpec> ExchangeLayer::parameters(std::span<const Shape>) const {
  return bias_ ? std::vector{*bias_} : std::vector<ParameterSpec>{};
}

std::int64_t ExchangeLayer::forward_flops(std::span<const Shape> inputs) const {
  if (kind_ != ExchangeKind::kScatterSums) return 0;
  return inputs[0].elements() / place_.ranks() * (place_.ranks() - 1 + (bias_ ? 1 : 0));
}

engine::OperatorSpec ExchangeLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::ExchangeSpec{inputs[0], kind_, place_, bias_.has_value()};
}

}  // namespace arbalest::dataflow
