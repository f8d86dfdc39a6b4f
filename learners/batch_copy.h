// Copies mini-batches to the arena of a plan.
#pragma once

#include <cstddef>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/memory/plan.h"
#include "engine/stream.h"

namespace arbalest::learners {

// Enqueues a copy of every tensor of `batch` to its place in `arena`. The batch must stay until `stream` has passed
// the copies. Throws kInternal unless the tensors are those that the plan reads.
void copy_batch(engine::Stream& stream, const dataflow::Plan& plan, const dataflow::Batch& batch, std::byte* arena);

}  // namespace arbalest::learners
