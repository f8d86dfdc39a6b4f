// Assigns buffers to the gradients of tensors while a graph runs backward. A tensor that several layers read gets one
// contribution from each reader; the contributions are added in the order in which they are computed. If a layer only
// passes a gradient on, tensors share a buffer until one of them has to be written.
#pragma once

#include <cstddef>
#include <vector>

#include "dataflow/autodiff.h"
#include "dataflow/graph.h"
#include "dataflow/memory/memory_plan.h"
#include "engine/operator.h"

namespace arbalest::dataflow {

// Below, buffers are indices into the lifetimes; -1: none.

// Buffers for the gradient of one input of a node.
struct InputGradient {
  int written = -1;  // written by the operator; -1: the gradient is not wanted
  // Set if layers after this node read the input too: `before` then holds the sum of their contributions, and after the
  // operator sum = before + written. `sum` may be the same buffer as `before` or `written`. If `sum` is -1, the
  // operator itself adds `before` to what it writes.
  int before = -1;
  int sum = -1;
};

struct NodeGradients {
  int output = -1;  // the operator reads the gradient of its output here
  // Copied to `output` first: the operator overwrites its output's gradient, and other nodes read it later.
  int copied_from = -1;
  std::vector<InputGradient> inputs;  // sums are made in this order
};

// Result by node; layouts by tensor, traits by node. Appends to `lifetimes`, in the times of buffer_lifetimes.h.
std::vector<NodeGradients> place_gradients(const Graph& graph, const std::vector<engine::Layout>& layouts,
                                           const std::vector<engine::OperatorTraits>& traits, const Backward& backward,
                                           std::vector<Lifetime>& lifetimes);

}  // namespace arbalest::dataflow
