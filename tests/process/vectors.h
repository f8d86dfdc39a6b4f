// Makes vectors for all-reduces, and their sums in the required order.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "tests/support/numbers.h"

namespace arbalest::tests {

// Adds in the order of the pairwise tree in engine/passes/averaging.h.
inline float sum_by_tree(std::span<const float> values) {
  if (values.size() == 1) return values[0];
  const std::size_t half = std::bit_ceil(values.size()) / 2;
  return sum_by_tree(values.first(half)) + sum_by_tree(values.subspan(half));
}

// Holds random addends of each rank, and their sum.
struct Addends {
  Addends(int ranks, std::size_t elements, unsigned seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      of_rank.push_back(random_floats(static_cast<std::int64_t>(elements), seed * 1000 + static_cast<unsigned>(rank)));
    }
    for (std::size_t i = 0; i < elements; ++i) {
      std::vector<float> values;
      for (const std::vector<float>& vector : of_rank) values.push_back(vector[i]);
      sum.push_back(sum_by_tree(values));
    }
  }

  std::vector<std::vector<float>> of_rank;
  std::vector<float> sum;
};

}  // namespace arbalest::tests
