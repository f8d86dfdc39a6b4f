// Fewer passes over memory: an activation that alone reads a layer's output becomes part of that layer, and a layer
// whose output is only added to another tensor takes over the sum and what follows it, if there is an operator for
// both.
#pragma once

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// The same function of the same parameters. A fused node has the producer's name, so parameters keep theirs; one with a
// sum takes the sum's place among the nodes, behind the other addend.
Graph fuse(const Graph& graph);

}  // namespace arbalest::dataflow
