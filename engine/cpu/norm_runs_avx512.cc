// Compiled for AVX-512: nothing here may run on another processor.
#include "engine/cpu/norm_runs_body.h"

namespace arbalest::engine::cpu {

constexpr NormRuns<float> kAvx512NormRuns = runs_of<1, float>();

}  // namespace arbalest::engine::cpu
