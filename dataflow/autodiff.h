// Finds the layers that run backward and the tensors that get a gradient, from the forward graph.
#pragma once

#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

struct Backward {
  std::vector<bool> node;             // by node: runs backward
  std::vector<bool> tensor_gradient;  // by tensor: its gradient is computed
};

// A tensor gets a gradient if a loss depends on it and it depends on a parameter that is trained. A node runs backward
// if it has such a parameter or an input with a gradient, and a loss depends on it. The gradient of a tensor is the sum
// over its readers that run backward.
Backward derive_backward(const Graph& graph);

// By node: whether the node runs at inference. Auxiliary losses do not run, nor do layers that only they read.
std::vector<bool> needed_at_inference(const Graph& graph);

}  // namespace arbalest::dataflow
