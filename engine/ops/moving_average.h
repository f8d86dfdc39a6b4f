// A flat vector that follows another slowly: the exponential moving average of what that one has held.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// average += weight (values - average). A weight of 1 copies, whatever `average` has held; one of 0 changes nothing.
struct MovingAverage {
  const float* values = nullptr;
  float* average = nullptr;
  float weight = 1.0F;  // in [0, 1]
  std::int64_t elements = 0;
};

}  // namespace arbalest::engine
