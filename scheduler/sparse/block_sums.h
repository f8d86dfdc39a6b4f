// The sums over rows that a step on a block of coordinates needs.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/error.h"

namespace arbalest::scheduler {

struct BlockSums {
  // G and U (proximal_solver.h), times the number of all rows, of each coordinate of the block that the filter has not
  // dropped: G, U, G, U ... All workers of all processes have dropped the same coordinates.
  std::vector<double> numbers = {};
  bool wants_stop = false;  // a process asks to end the pass

  void add(const BlockSums& other) {
    ARBALEST_CHECK(numbers.size() == other.numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
    wants_stop = wants_stop || other.wants_stop;
  }
};

}  // namespace arbalest::scheduler
