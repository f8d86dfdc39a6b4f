// Two numbers that stand for a histogram of staleness in reports.
#pragma once

#include <cstdint>

#include "sma/staleness_clocks.h"

namespace arbalest::sma {

struct StalenessSummary {
  double mean = 0.0;  // over the pushes or steps
  std::int64_t largest = 0;
};

// `counts` must have a push.
inline StalenessSummary summary_of(const StalenessCounts& counts) {
  std::int64_t pushes = 0;
  double sum = 0.0;
  for (const auto& [staleness, count] : counts) {
    pushes += count;
    sum += static_cast<double>(staleness) * static_cast<double>(count);
  }
  return {sum / static_cast<double>(pushes), counts.rbegin()->first};
}

}  // namespace arbalest::sma
