// The graph that one device of a split model runs. Dense layers with `split` keep their part of the weights there, and
// exchanges bring the activations to it (docs/parallelism.md). All other layers are data-parallel.
#pragma once

#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/layers/dense.h"

namespace arbalest::dataflow {

// A dense layer that the model splits, and the length of the axis that is divided: units or inputs.
struct SplitLayer {
  std::string name;
  DenseSplit split = DenseSplit::kNone;
  std::int64_t length = 0;
};

std::vector<SplitLayer> split_layers(const Graph& graph);

// `graph` is the whole model; SplitLayer::length must be a multiple of the devices. The result has the parameters of
// `graph` in the same order, under the same names. Elementwise layers between a split by columns and one by rows work
// on the device's columns, so that nothing is exchanged there.
Graph split_graph(const Graph& graph, const engine::ExchangeMember& place);

}  // namespace arbalest::dataflow
