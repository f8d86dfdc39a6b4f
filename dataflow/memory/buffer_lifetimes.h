// Lifetimes of a plan's buffers: when each one holds data. The memory plan is made from them.
#pragma once

#include <cstddef>
#include <vector>

#include "dataflow/autodiff.h"
#include "dataflow/graph.h"
#include "dataflow/memory/gradient_buffers.h"
#include "dataflow/memory/memory_plan.h"
#include "engine/operator.h"

namespace arbalest::dataflow {

// Times are integers: node n runs forward at time n and backward at time 2 * nodes - 1 - n. `value` holds indices into
// `lifetimes`; tensors that share a buffer (in-place operators) have the same index.
struct BufferLifetimes {
  std::vector<Lifetime> lifetimes;
  std::vector<int> value;                // by tensor; -1: not in the arena (results)
  std::vector<NodeGradients> gradients;  // by node
  std::vector<int> saved;                // by node; -1: none
  std::vector<int> forward_scratch;      // by node; -1: none
  std::vector<int> backward_scratch;     // by node; -1: none
  // Bytes of one buffer for each layer's output and one for its gradient, if it has a gradient. The mini-batch, saved
  // values and scratch memory are not counted.
  std::size_t bytes_without_reuse = 0;
};

inline constexpr int kNoTensor = -1;

// `traits`: by node, of the prepared operators. `forward`: by node, whether it runs. `backward`: all false for
// inference. `kept`: number of a tensor that must hold its data until the end of the pass, or kNoTensor.
BufferLifetimes find_lifetimes(const Graph& graph, const std::vector<engine::Layout>& layouts,
                               const std::vector<engine::OperatorTraits>& traits, const std::vector<bool>& forward,
                               const Backward& backward, int kept = kNoTensor);

}  // namespace arbalest::dataflow
