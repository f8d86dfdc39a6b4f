// Looks up rows of a table by id: y[n] = w[ids[n, column]]. The gradient of the table is dense. A row that is looked up
// more than once gets the sum in the order of the mini-batch, so the bits are always the same. Other rows get zero.
// Inputs: ids. The ids have no gradient.
#pragma once

#include <cstdint>

#include "engine/base/layout.h"

namespace arbalest::engine {

struct EmbeddingSpec {
  Layout ids;               // [n, columns] int32; ids of the column are in [0, rows)
  std::int64_t column = 0;  // column of `ids` to look up
  std::int64_t rows = 0;    // weights [rows, width] float32
  std::int64_t width = 0;   // output [n, width] float32
};

}  // namespace arbalest::engine
