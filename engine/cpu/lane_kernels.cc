#include "engine/cpu/lane_kernels.h"

namespace arbalest::engine::cpu {

const LaneKernels& lane_kernels() { return __builtin_cpu_supports("avx512f") ? kAvx512LaneKernels : kAvx2LaneKernels; }

}  // namespace arbalest::engine::cpu
