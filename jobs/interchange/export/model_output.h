// The part of a graph that computes a model's output at inference.
#pragma once

#include <vector>

#include "dataflow/graph.h"

namespace arbalest::jobs {

// Returns for each node whether `tensor` depends on it.
std::vector<bool> needed_for(const dataflow::Graph& graph, int tensor);

}  // namespace arbalest::jobs
