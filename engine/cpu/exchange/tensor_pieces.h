// The pieces of a tensor that the devices of a split model exchange. A rank reads one piece of each rank's tensor, b
// rows, one for each example of one of the two ranks:
//   kGather       all columns of the other rank's examples; every rank reads the same
//   kScatterSums  all columns of the own examples
//   kToColumns    the own columns of the other rank's examples
//   kToExamples   the other rank's columns of the own examples
#pragma once

#include <cstdint>

#include "engine/ops/exchange_sizes.h"

namespace arbalest::engine::cpu {

// Rows of floats, `stride` floats apart.
struct Piece {
  const float* values = nullptr;
  std::int64_t stride = 0;

  const float* row(std::int64_t row) const { return values + row * stride; }
};

// The piece that `reader` reads of the tensor `values`.
inline Piece piece_of(const ExchangeSizes& sizes, const float* values, std::int64_t reader) {
  switch (sizes.kind) {
    case ExchangeKind::kGather: return {values, sizes.columns};
    case ExchangeKind::kToColumns: return {values + reader * sizes.part(), sizes.columns};
    case ExchangeKind::kScatterSums:
    case ExchangeKind::kToExamples: break;
  }
  return {values + reader * sizes.piece_floats(), sizes.width()};
}

}  // namespace arbalest::engine::cpu
