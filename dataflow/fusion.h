// Fusion saves passes over memory. An activation that is the only reader of a layer's output becomes part of that
// layer. If a layer's output is only added to another tensor, the layer takes over the sum and the activation after it,
// if there is an operator for both. The main loss takes over the metric of the logits that it reads.
#pragma once

#include <string>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// Returns a graph that computes the same function of the same parameters. A fused node keeps the producer's name, so
// parameters keep their names. A node that takes over a sum moves to the sum's place in the order, after the other
// addend.
Graph fuse(const Graph& graph);

struct FusedGraph {
  Graph graph;
  std::string kept;  // name of the node that computes the kept output
};

// Like fuse(), but the output of the layer `kept` stays a tensor, because the caller reads it. If the layer is an
// activation or a sum, it may become part of the layer before it, which computes the same output. "": no such layer.
FusedGraph fuse(const Graph& graph, const std::string& kept);

}  // namespace arbalest::dataflow
