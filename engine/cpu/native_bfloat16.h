// Loops over bfloat16 by the processor's own rounding: elementwise::to_bfloat16, but numbers below 2^-126 become zero,
// for which the products take them anyhow. Only on a processor that has avx512_bf16.
#pragma once

#include <cstdint>

#include "engine/bfloat16.h"

namespace arbalest::engine::cpu {

// to = from, of `count` numbers.
void round_natively(const float* from, BFloat16* to, std::int64_t count);
// sum = a + b, of `count` numbers. The sum may be at the place of a, of b, or of both.
void add_natively(const BFloat16* a, const BFloat16* b, BFloat16* sum, std::int64_t count);

}  // namespace arbalest::engine::cpu
