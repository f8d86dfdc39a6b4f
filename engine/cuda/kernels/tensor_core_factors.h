// The numbers that tensor cores multiply.
#pragma once

#include <cstdint>

#include "engine/base/bfloat16.h"

namespace arbalest::engine::cuda {

// A float32 whose last 13 bits are zero: 10 bits of fraction remain. It may lie in memory instead of a float.
struct Tf32 {
  std::uint32_t bits;
};

// Two bfloat16 of neighboring columns of a, or rows of b. They may be loaded from memory by one instruction.
struct alignas(4) BFloat16Pair {
  BFloat16 first;
  BFloat16 second;
};

}  // namespace arbalest::engine::cuda
