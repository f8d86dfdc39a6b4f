// The rows of one worker of delayed block proximal gradient, with their margins y_i (w x_i + b).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataflow/input/sparse/sparse_columns.h"
#include "dataflow/input/sparse/sparse_rows.h"
#include "scheduler/sparse/block_sums.h"
#include "scheduler/sparse/coordinate_blocks.h"

namespace arbalest::scheduler {

class RowMargins {
 public:
  struct Score {
    double loss = 0.0;       // sum over the rows
    std::int64_t right = 0;  // rows with a positive margin

    void add(const Score& other) {
      loss += other.loss;
      right += other.right;
    }
  };

  // Takes the rows [first, last) of `rows`, which are only read here. All weights are 0.
  RowMargins(const dataflow::SparseRows& rows, std::int64_t first, std::int64_t last, dataflow::ColumnOfOnes ones);

  // Returns the sums of a block over these rows, for coordinates with `is_active`. `bounds`: delta, by coordinate.
  BlockSums sums(const CoordinateBlock& block, std::span<const double> bounds,
                 std::span<const std::uint8_t> is_active) const;
  // The coordinates of the block have taken these steps: [block size].
  void apply(const CoordinateBlock& block, std::span<const double> steps);
  Score score() const;

  // Remembers the margins, and brings them back.
  void keep() { kept_ = margins_; }
  void bring_back();

 private:
  dataflow::SparseColumns columns_;
  std::vector<double> labels_;   // [rows]
  std::vector<double> margins_;  // [rows]
  std::vector<double> wrong_;    // [rows] wrong_probability(margin)
  std::vector<double> kept_;     // [rows] margins
};

}  // namespace arbalest::scheduler
