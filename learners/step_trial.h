// Times training steps before a run: the same work as in the run, on zeros.
#pragma once

#include "dataflow/graph.h"
#include "engine/device.h"
#include "learners/learner_group.h"

namespace arbalest::learners {

// Seconds of a training step of one team, with copies of its mini-batches from host memory: the median of up to five
// after a first one that is not counted, of which slow models take fewer. `threads`: of each learner; `size`: learners
// of the team, as Device::takes_teams() allows. Options::learner must have no data on the device. Blocks the host; the
// team is freed before the return. Throws what preparing the model throws, kOutOfMemory, and errors of the device.
double time_step(const dataflow::Graph& graph, engine::Device& device, const PoolOptions& options, int threads,
                 int size);

}  // namespace arbalest::learners
