// Rows of a table, looked up by id: y[n] = w[ids[n, column]]. The gradient of the table is dense, sums rows that are
// looked up more than once in the order of the mini-batch, and is zero where no id points: the same bits each time.
// Inputs: ids. The ids have no gradient.
#pragma once

#include <cstdint>

#include "engine/layout.h"

namespace arbalest::engine {

struct EmbeddingSpec {
  Layout ids;               // [n, columns] int32; those of the column in [0, rows)
  std::int64_t column = 0;  // of the ids
  std::int64_t rows = 0;    // weights [rows, width] float32
  std::int64_t width = 0;   // output [n, width] float32
};

}  // namespace arbalest::engine
