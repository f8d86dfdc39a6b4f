// Compiled for AVX-512: this code must not run on other processors.
#include "engine/cpu/lanes/kernels_body.h"

namespace arbalest::engine::cpu {

constexpr LaneKernels kAvx512LaneKernels =
    make_kernels<Float32<16>, 13>(5, 5, correlate<Float32<16>, 5>);  // 32 registers

}  // namespace arbalest::engine::cpu
