#include "engine/cpu/lanes/kernels_body.h"

namespace arbalest::engine::cpu {

constexpr LaneKernels kAvx2LaneKernels = make_kernels<Float32<8>, 6>(2, 2, correlate<Float32<8>, 2>);  // 16 registers

}  // namespace arbalest::engine::cpu
