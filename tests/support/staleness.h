// Reads the counts of pushes, or of steps on shared weights, by their staleness.
#pragma once

#include <cstdint>

#include "sma/staleness_clocks.h"

namespace arbalest::tests {

// Returns the number of pushes or steps of any staleness.
inline std::int64_t count_of(const sma::StalenessCounts& counts) {
  std::int64_t count = 0;
  for (const auto& [staleness, number] : counts) count += number;
  return count;
}

}  // namespace arbalest::tests
