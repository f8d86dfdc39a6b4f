// Checks of a graph that need no knowledge of how it is built.
#pragma once

#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// Throws kInvalidJob unless the layer reads the label exactly where it compares with it, and labels of its type.
// `is_label`: by input, whether it is the graph's label.
void check_label_use(const InputDescription& input, const Layer& layer, const std::vector<bool>& is_label);

// Throws kInvalidJob or LayerError unless ids are looked up and nothing else is, in tables with a row for each id.
void check_ids(const InputDescription& input, const Layer& layer, bool reads_ids);

// Returns an issue for a model without parameters, and for each layer whose parameters no loss depends on. The graph
// must be free of other issues, because those can cut a layer off from the loss.
std::vector<GraphIssue> find_untrained(const Graph& graph, const std::vector<LayerDescription>& layers);

}  // namespace arbalest::dataflow
