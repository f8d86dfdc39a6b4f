// Compiled for AVX-512: this code must not run on other processors.
#include "engine/cpu/normalization/runs_body.h"

namespace arbalest::engine::cpu {

constexpr NormRuns<float> kAvx512NormRuns = runs_of<1, float>();

}  // namespace arbalest::engine::cpu
