// When each buffer of a plan holds something: what the memory plan is made from.
#pragma once

#include <cstddef>
#include <vector>

#include "dataflow/autodiff.h"
#include "dataflow/gradient_buffers.h"
#include "dataflow/graph.h"
#include "dataflow/memory_plan.h"
#include "engine/operator.h"

namespace arbalest::dataflow {

// Time of a node's forward is its number n; of its backward 2 * nodes - 1 - n. Tensors that share a buffer (in-place
// operators) have the same number in `value`, an index into `lifetimes`.
struct BufferLifetimes {
  std::vector<Lifetime> lifetimes;
  std::vector<int> value;                // by tensor; -1: not in the arena (results)
  std::vector<NodeGradients> gradients;  // by node
  std::vector<int> saved;                // by node; -1: none
  std::vector<int> forward_scratch;      // by node; -1: none
  std::vector<int> backward_scratch;     // by node; -1: none
  // A buffer for every layer's output and one for its gradient, if it has one, and for nothing else: no mini-batch, no
  // saved values, no scratch memory.
  std::size_t bytes_without_reuse = 0;
};

// `traits`: by node, of the prepared operators. `forward`: by node, whether it runs. `backward`: all false for
// inference.
BufferLifetimes find_lifetimes(const Graph& graph, const std::vector<engine::Layout>& layouts,
                               const std::vector<engine::OperatorTraits>& traits, const std::vector<bool>& forward,
                               const Backward& backward);

}  // namespace arbalest::dataflow
