// The bfloat16 kernels of processors with avx512_bf16, compiled with emulated instructions
// (tests/engine/emulated_bf16.h). They run on every processor, so that tests without one find errors, too.
#pragma once

#include "engine/cpu/dense_gradient/kernel.h"
#include "engine/cpu/lanes/kernels.h"
#include "engine/cpu/normalization/runs.h"

namespace arbalest::engine::cpu {

extern const LaneKernels kEmulatedLaneKernels;
const LaneKernels* emulated_lane_kernels();
extern const NormRuns<BFloat16> kEmulatedNormRuns;
void emulated_dense_gradient_of_block(const DenseGradientTask& task);
void emulated_round(const float* from, BFloat16* to, std::int64_t count);
void emulated_add(const BFloat16* a, const BFloat16* b, BFloat16* sum, std::int64_t count);

}  // namespace arbalest::engine::cpu
