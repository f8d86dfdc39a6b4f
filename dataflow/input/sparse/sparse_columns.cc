#include "dataflow/input/sparse/sparse_columns.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/base/error.h"

namespace arbalest::dataflow {

SparseColumns columns_of(const SparseRows& matrix, std::int64_t first, std::int64_t last, ColumnOfOnes ones) {
  ARBALEST_CHECK(last - first <= std::numeric_limits<std::int32_t>::max());
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const bool has_ones = ones == ColumnOfOnes::kYes;
  const std::int64_t columns = matrix.columns + (has_ones ? 1 : 0);
  SparseColumns part;
  part.starts.assign(at(columns) + 1, 0);
  const std::int64_t begin = matrix.starts[at(first)];
  const std::int64_t end = matrix.starts[at(last)];
  for (std::int64_t e = begin; e < end; ++e) ++part.starts[at(matrix.indices[at(e)]) + 1];
  if (has_ones) part.starts.back() = last - first;
  std::partial_sum(part.starts.begin(), part.starts.end(), part.starts.begin());
  part.rows.resize(at(part.starts.back()));
  part.values.resize(at(part.starts.back()));
  std::vector<std::int64_t> next(part.starts.begin(), part.starts.end() - 1);
  const auto add = [&](std::int64_t column, std::int64_t row, float value) {
    const std::size_t place = at(next[at(column)]++);
    part.rows[place] = static_cast<std::int32_t>(row - first);
    part.values[place] = value;
  };
  for (std::int64_t row = first; row < last; ++row) {
    for (std::int64_t e = matrix.starts[at(row)]; e < matrix.starts[at(row) + 1]; ++e) {
      add(matrix.indices[at(e)], row, matrix.values[at(e)]);
    }
    if (has_ones) add(matrix.columns, row, 1.0F);
  }
  return part;
}

std::vector<std::int64_t> equal_parts(const SparseRows& matrix, int parts) {
  std::vector<std::int64_t> first = {0};
  for (int part = 1; part < parts; ++part) {
    const std::int64_t entries = matrix.entries() / parts * part;
    const auto row = std::lower_bound(matrix.starts.begin(), matrix.starts.end(), entries) - matrix.starts.begin();
    first.push_back(std::clamp(static_cast<std::int64_t>(row), first.back(), matrix.rows()));
  }
  first.push_back(matrix.rows());
  return first;
}

}  // namespace arbalest::dataflow
