// The sizes of the tensors that the devices of a split model exchange, and the way back of their gradients.
#pragma once

#include <cstdint>

#include "engine/base/error.h"
#include "engine/ops/exchange.h"

namespace arbalest::engine {

// b examples for each of `ranks` devices, n columns in all.
struct ExchangeSizes {
  ExchangeKind kind = ExchangeKind::kGather;
  std::int64_t ranks = 1;
  std::int64_t examples = 0;
  std::int64_t columns = 0;

  bool operator==(const ExchangeSizes&) const = default;

  // Whether a piece has all columns.
  bool is_whole() const { return kind == ExchangeKind::kGather || kind == ExchangeKind::kScatterSums; }
  // Whether all ranks read the same piece of a tensor.
  bool is_shared() const { return kind == ExchangeKind::kGather; }
  std::int64_t part() const { return columns / ranks; }  // columns of one device
  // Columns of a piece, which has `examples` rows.
  std::int64_t width() const { return is_whole() ? columns : part(); }
  std::int64_t piece_floats() const { return examples * width(); }

  Shape output() const {
    if (kind == ExchangeKind::kGather || kind == ExchangeKind::kToColumns) return {ranks * examples, width()};
    return {examples, columns};
  }
};

// The sizes of the exchange `spec`; `input` is [b, n] or [P b, n / P] (engine/ops/exchange.h).
inline ExchangeSizes sizes_of(const ExchangeSpec& spec) {
  const Shape& input = spec.input.shape();
  ARBALEST_CHECK(input.rank() == 2);
  ExchangeSizes sizes{.kind = spec.kind, .ranks = spec.place.ranks(), .examples = input[0], .columns = input[1]};
  if (spec.kind == ExchangeKind::kScatterSums || spec.kind == ExchangeKind::kToExamples) {
    ARBALEST_CHECK(input[0] % sizes.ranks == 0);
    sizes.examples = input[0] / sizes.ranks;
  }
  if (spec.kind == ExchangeKind::kToExamples) sizes.columns = input[1] * sizes.ranks;
  ARBALEST_CHECK(spec.kind != ExchangeKind::kToColumns || sizes.columns % sizes.ranks == 0);
  return sizes;
}

// The exchange that the gradient takes.
constexpr ExchangeKind way_back(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kGather: return ExchangeKind::kScatterSums;
    case ExchangeKind::kScatterSums: return ExchangeKind::kGather;
    case ExchangeKind::kToColumns: return ExchangeKind::kToExamples;
    case ExchangeKind::kToExamples: break;
  }
  return ExchangeKind::kToColumns;
}

inline ExchangeSizes way_back(ExchangeSizes sizes) {
  sizes.kind = way_back(sizes.kind);
  return sizes;
}

}  // namespace arbalest::engine
