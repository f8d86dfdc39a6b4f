// Loops over bfloat16 with the processor's own rounding. They differ from elementwise::to_bfloat16 in that numbers
// below 2^-126 become zero; products treat them as zero anyway. Only on a processor with avx512_bf16.
#pragma once

#include <cstdint>

#include "engine/base/bfloat16.h"

namespace arbalest::engine::cpu {

// to = from, for `count` numbers.
void round_natively(const float* from, BFloat16* to, std::int64_t count);
// sum = a + b, for `count` numbers. `sum` may be a, b, or both.
void add_natively(const BFloat16* a, const BFloat16* b, BFloat16* sum, std::int64_t count);

}  // namespace arbalest::engine::cpu
