// Times work on a GPU, as a learner's step runs it.
#pragma once

#include <functional>

#include "engine/cuda/runtime/stream.h"
#include "engine/operator.h"

namespace arbalest::engine::cuda {

// Microseconds of what `submit` submits to `stream` for `replicas`: the median of several launches of a recorded graph,
// in which it runs several times; of fewer if it takes milliseconds. Nothing else may use the stream. Blocks the host.
// Throws kOutOfMemory, and kDevice if the work fails.
double time_work(const std::function<void()>& submit, const ReplicaMemory& replicas, CudaStream& stream);

// Microseconds of forward, in training followed by backward, for all replicas of PrepareOptions, as time_work measures
// them. The operator reads zeros. `op` has one input,
// with the layout `input`, and was prepared with `options`. `stream` runs operators for at least as many replicas.
// Throws as time_work does.
double time_operator(const Operator& op, const Layout& input, const PrepareOptions& options, CudaStream& stream);

}  // namespace arbalest::engine::cuda
