// The loops of a sum of two tensors, with or without ReLU. Batch norm uses them for its addend.
#pragma once

#include "engine/cpu/onednn/program.h"

namespace arbalest::engine::cpu {

// sum = a + b, or ReLU(a + b), which keeps NaN. All three have one layout, padding included; `sum` may be one of the
// others.
void add_sum(Program& program, const Operand& a, const Operand& b, bool relu, const Operand& sum);

// Writes to `gradient` the one gradient that both addends share: Role::kOutputGradient, or with ReLU
// Role::kOutputGradient where Role::kOutput is above 0, else 0. All have the layout of `gradient`, which may be the
// output's gradient.
void add_sum_gradient(Program& program, bool relu, const Operand& gradient);

}  // namespace arbalest::engine::cpu
