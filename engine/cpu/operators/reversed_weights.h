// Weights for a convolution that is computed as another one's input gradient (LinearKernels::reversed).
#pragma once

#include "engine/cpu/onednn/program.h"

namespace arbalest::engine::cpu {

// Writes the weights to scratch with both kernel axes reversed and channels and filters exchanged, in the layout
// `wanted`.
Operand reverse_weights(Program& program, const Operand& weights, const dnnl::memory::desc& wanted);

}  // namespace arbalest::engine::cpu
