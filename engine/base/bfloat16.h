// bfloat16: the upper half of a float32, with 8 bits of precision and float32's range.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// An element in memory. Arithmetic is done in float32 (engine/elementwise/bfloat16.h converts).
struct BFloat16 {
  std::uint16_t bits;
};

}  // namespace arbalest::engine
