#include "engine/cpu/lane_kernels_body.h"

namespace arbalest::engine::cpu {

constexpr LaneKernels kAvx2LaneKernels = lane_kernels_body::make_kernels<8, 6, 2>();  // 16 registers

}  // namespace arbalest::engine::cpu
