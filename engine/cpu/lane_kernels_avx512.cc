// Compiled for AVX-512: nothing here may run on another processor.
#include "engine/cpu/lane_kernels_body.h"

namespace arbalest::engine::cpu {

constexpr LaneKernels kAvx512LaneKernels = lane_kernels_body::make_kernels<16, 13, 5>();  // 32 registers

}  // namespace arbalest::engine::cpu
