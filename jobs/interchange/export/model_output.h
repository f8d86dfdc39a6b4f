// The part of a graph that computes a model's output at inference.
#pragma once

#include <vector>

#include "dataflow/graph.h"

namespace arbalest::jobs {

// Number of the tensor that the main loss compares with the labels: logits, or predictions.
int result_tensor(const dataflow::Graph& graph);

// By node: whether `tensor` depends on it.
std::vector<bool> needed_for(const dataflow::Graph& graph, int tensor);

}  // namespace arbalest::jobs
