// A hash of a flat vector: devices that hold copies of one vector compare them by it.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// *hash := sum over elements of elementwise::hashed(values[i], i), modulo 2^64. Equal on all kinds of devices, and for
// any number of threads. 0 and -0 differ, and so do NaNs with other bits.
struct VectorHash {
  const float* values = nullptr;
  std::int64_t elements = 0;
  std::uint64_t* hash = nullptr;
};

}  // namespace arbalest::engine
