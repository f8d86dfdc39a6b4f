// The loops of a sum of two tensors with or without ReLU, which batch norm takes over with its addend.
#pragma once

#include "engine/cpu/program.h"

namespace arbalest::engine::cpu {

// sum = a + b, or max(0, a + b). All three lie alike, padding included; sum may be one of the others.
void add_sum(Program& program, const Operand& a, const Operand& b, bool relu, const Operand& sum);

// gradient = that of both addends: Role::kOutputGradient, with ReLU where Role::kOutput is above 0. All lie as
// `gradient`, which may be the output's.
void add_sum_gradient(Program& program, bool relu, const Operand& gradient);

}  // namespace arbalest::engine::cpu
