// Labeled rows of numbers, most of which are zero (compressed sparse rows).
#pragma once

#include <cstdint>
#include <vector>

namespace arbalest::dataflow {

struct SparseRows {
  std::int64_t columns = 0;
  std::vector<std::int64_t> starts = {0};  // [rows + 1]; the entries of row i are [starts[i], starts[i + 1])
  std::vector<std::int32_t> indices;       // [entries] columns, counted from 0, ascending within a row
  std::vector<float> values;               // [entries] finite, not 0
  std::vector<std::int8_t> labels;         // [rows] 1 or -1

  std::int64_t rows() const noexcept { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t entries() const noexcept { return static_cast<std::int64_t>(values.size()); }
};

}  // namespace arbalest::dataflow
