// A flat vector that slowly follows another: the exponential moving average of the other's values.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// average += weight (values - average). Weight 1 copies, even if `average` is not finite; weight 0 changes nothing.
struct MovingAverage {
  const float* values = nullptr;
  float* average = nullptr;
  float weight = 1.0F;  // in [0, 1]
  std::int64_t elements = 0;
};

}  // namespace arbalest::engine
