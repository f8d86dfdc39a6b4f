#pragma once

#include <cstdint>

#include "engine/bfloat16.h"

namespace arbalest::engine::cpu {

// elementwise::to_bfloat16 of `count` numbers, but those below 2^-126 become zero, for which the products take them
// anyhow. Only on a processor that has avx512_bf16.
void round_natively(const float* from, BFloat16* to, std::int64_t count);

}  // namespace arbalest::engine::cpu
