// Replaces the header of the same path, which is written in PTX.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/cuda/kernels/tensor_core_factors.h"
#include "tests/cuda_stand_in/tensor_products.h"

namespace arbalest::engine::cuda {

inline Tf32 round_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFF'FFFFU) > 0x7F80'0000U;
  return {is_nan ? 0x7FFF'FFFFU : (bits + 0x1000U) & ~0x1FFFU};
}

inline void multiply_add_tf32(float (&d)[4], const Tf32 (&a)[4], const Tf32 (&b)[2], int line = __builtin_LINE()) {
  tests::cuda_stand_in::multiply_add(d, a, b, line);
}

inline void multiply_add_bf16(float (&d)[4], const BFloat16Pair (&a)[4], const BFloat16Pair (&b)[2],
                              int line = __builtin_LINE()) {
  tests::cuda_stand_in::multiply_add(d, a, b, line);
}

}  // namespace arbalest::engine::cuda
