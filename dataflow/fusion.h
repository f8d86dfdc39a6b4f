// Fewer passes over memory: an activation that alone reads a layer's output becomes part of that layer, if there is an
// operator for both.
#pragma once

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// The same function of the same parameters. A fused node has the producer's name, so parameters keep theirs.
Graph fuse(const Graph& graph);

}  // namespace arbalest::dataflow
