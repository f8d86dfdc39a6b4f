// Made-up sparse rows of two classes, and their text in LIBSVM's format.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/sparse/sparse_rows.h"

namespace arbalest::tests {

struct SparseShape {
  std::int64_t rows = 400;
  std::int64_t columns = 60;
  int entries = 8;  // of a row
};

// A uniform number in [0, 1), the same on every standard library.
inline double uniform(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }

// Labels follow a logistic model in which every fifth column has a weight. Values are multiples of 1/8 in [-2, 2], so
// that their text is exact.
inline dataflow::SparseRows make_sparse_rows(const SparseShape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  dataflow::SparseRows made;
  made.columns = shape.columns;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    std::vector<std::int32_t> columns;
    for (int e = 0; e < shape.entries; ++e) {
      columns.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(shape.columns)));
    }
    std::ranges::sort(columns);
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    double output = 0.25;
    for (const std::int32_t column : columns) {
      const auto steps = static_cast<int>(random() % 32) - 16;
      const float value = static_cast<float>(steps >= 0 ? steps + 1 : steps) / 8.0F;
      made.indices.push_back(column);
      made.values.push_back(value);
      if (column % 5 == 0) output += (column % 2 == 0 ? 1.5 : -1.5) * value;
    }
    made.labels.push_back(uniform(random) < 1.0 / (1.0 + std::exp(-output)) ? 1 : -1);
    made.starts.push_back(made.entries());
  }
  return made;
}

struct ClusteredShape {
  std::int64_t rows = 400;
  std::int32_t clusters = 10;
  std::int32_t columns_of_cluster = 10;
};

// Half of the clusters are in a row, with all their columns. These have almost the same values, as counts of words do
// that stand together. Labels follow a logistic model of the clusters.
inline dataflow::SparseRows make_clustered_rows(const ClusteredShape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  dataflow::SparseRows made;
  made.columns = std::int64_t{shape.clusters} * shape.columns_of_cluster;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    double output = 0.25;
    for (std::int32_t cluster = 0; cluster < shape.clusters; ++cluster) {
      if (random() % 2 == 0) continue;
      const double value = 2.0 * uniform(random) - 1.0;
      output += (cluster % 2 == 0 ? 2.0 : -2.0) * value;
      for (std::int32_t column = 0; column < shape.columns_of_cluster; ++column) {
        made.indices.push_back(cluster * shape.columns_of_cluster + column);
        made.values.push_back(static_cast<float>(value + 0.2 * (uniform(random) - 0.5)));
      }
    }
    made.labels.push_back(uniform(random) < 1.0 / (1.0 + std::exp(-output)) ? 1 : -1);
    made.starts.push_back(made.entries());
  }
  return made;
}

inline std::string libsvm_text(const dataflow::SparseRows& rows) {
  std::string text;
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    text += rows.labels[row] > 0 ? "+1" : "-1";
    for (auto e = static_cast<std::size_t>(rows.starts[row]); e < static_cast<std::size_t>(rows.starts[row + 1]); ++e) {
      text += fmt::format(" {}:{}", rows.indices[e] + 1, rows.values[e]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace arbalest::tests
