// Which buffers the gradients of tensors are in while a graph runs backward. A tensor that several layers read gets one
// contribution from each, added up as they come; where a layer only passes a gradient on, tensors share a buffer until
// one of them has to be written.
#pragma once

#include <cstddef>
#include <vector>

#include "dataflow/autodiff.h"
#include "dataflow/graph.h"
#include "dataflow/memory_plan.h"
#include "engine/operator.h"

namespace arbalest::dataflow {

// Below, buffers are indices into the lifetimes; -1: none.

// What backward of a node does for the gradient of one input.
struct InputGradient {
  int written = -1;  // by the operator; -1: not wanted
  // Of an input that layers behind this node read too: after the operator, sum = before + written, with the sum of
  // their contributions in `before`. The sum may be in the place of either.
  int before = -1;
  int sum = -1;
};

struct NodeGradients {
  int output = -1;       // where the operator reads the gradient of its output
  int copied_from = -1;  // it is copied from there first, for the operator overwrites it and others read it later
  std::vector<InputGradient> inputs;  // sums are made in this order
};

// By node; appends to `lifetimes`, whose times are those of buffer_lifetimes.h. Layouts by tensor, traits by node.
std::vector<NodeGradients> place_gradients(const Graph& graph, const std::vector<engine::Layout>& layouts,
                                           const std::vector<engine::OperatorTraits>& traits, const Backward& backward,
                                           std::vector<Lifetime>& lifetimes);

}  // namespace arbalest::dataflow
