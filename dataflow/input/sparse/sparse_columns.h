// The columns of some of the rows of a sparse matrix (compressed sparse columns).
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"

namespace arbalest::dataflow {

struct SparseColumns {
  std::vector<std::int64_t> starts;  // [columns + 1]; the entries of column j are [starts[j], starts[j + 1])
  std::vector<std::int32_t> rows;    // [entries] counted from 0 within the part, ascending within a column
  std::vector<float> values;         // [entries]
};

// Chooses whether a further column holds a 1 in every row.
enum class ColumnOfOnes { kNo, kYes };

// The columns of rows [first, last), which are fewer than 2^31.
SparseColumns columns_of(const SparseRows& matrix, std::int64_t first, std::int64_t last, ColumnOfOnes ones);

// Divides the rows into parts with about equal numbers of entries. Returns the first row of each part, and the number
// of rows: [parts + 1], ascending. A part of few rows may be empty.
std::vector<std::int64_t> equal_parts(const SparseRows& matrix, int parts);

}  // namespace arbalest::dataflow
