// A flat vector that follows another slowly: the exponential moving average of what that one has held.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// average += weight (values - average). A weight of 1 copies, whatever `average` has held; one of 0 changes nothing.
struct MovingAverage {
  const float* values = nullptr;
  float* average = nullptr;
  double weight = 1.0;  // in [0, 1]; taken as float32. As wide as its neighbors: no padding in kernel arguments
  std::int64_t elements = 0;
};

}  // namespace arbalest::engine
