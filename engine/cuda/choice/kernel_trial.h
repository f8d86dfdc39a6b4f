// Times an operator on a GPU, as a learner's step runs it.
#pragma once

#include "engine/cuda/runtime/stream.h"
#include "engine/operator.h"

namespace arbalest::engine::cuda {

// Microseconds of forward, in training followed by backward, for all replicas of PrepareOptions: the median of several
// launches of a recorded graph, in which the operator runs several times. The operator reads zeros. `op` has one input,
// with the layout `input`, and was prepared with `options`. `stream` runs operators, and has at least as many replicas;
// nothing else may use it. Blocks the host. Throws kOutOfMemory if memory for the operands is short, and kDevice if
// the operator fails.
double time_operator(const Operator& op, const Layout& input, const PrepareOptions& options, CudaStream& stream);

}  // namespace arbalest::engine::cuda
