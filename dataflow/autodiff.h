// Which layers run backward and which tensors get a gradient: derived from the forward graph.
#pragma once

#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

struct Backward {
  std::vector<bool> node;             // by node: runs backward
  std::vector<bool> tensor_gradient;  // by tensor: its gradient is computed
};

// A tensor gets a gradient if the loss depends on it and it depends on a parameter. A node runs backward if it has
// parameters or an input with a gradient, and the loss depends on it.
Backward derive_backward(const Graph& graph);

}  // namespace arbalest::dataflow
