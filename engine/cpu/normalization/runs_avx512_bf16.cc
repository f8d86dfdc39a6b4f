// Compiled for AVX-512 with bfloat16: this code must not run on other processors.
#include "engine/cpu/normalization/runs_body.h"

namespace arbalest::engine::cpu {

constexpr NormRuns<BFloat16> kAvx512Bf16NormRuns = runs_of<1, BFloat16>();

}  // namespace arbalest::engine::cpu
