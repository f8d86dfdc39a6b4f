// Builds the nodes of a graph from the layers of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// Shapes of the graph's inputs, by tensor number.
std::vector<engine::Shape> graph_input_shapes(const InputDescription& input, std::int64_t batch);

// Sorts and checks the layers, and adds an accuracy layer if a classifier has none. Throws as Graph::build does, but
// for parameters that are never trained (graph_checks.h).
std::vector<Graph::Node> build_nodes(const InputDescription& input, const std::vector<LayerDescription>& layers);

}  // namespace arbalest::dataflow
