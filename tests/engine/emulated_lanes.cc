#include "tests/engine/emulated_bf16.h"

// This must follow.
#include "engine/cpu/lanes/kernels_avx512_bf16.cc"

namespace arbalest::engine::cpu {

const LaneKernels* emulated_lane_kernels() { return &kEmulatedLaneKernels; }

}  // namespace arbalest::engine::cpu
