// Checks of a graph that need no knowledge of how it is built.
#pragma once

#include <span>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// Throws kInvalidJob unless the layer reads the label exactly where it compares with it, and labels of its type.
// `data`: by input of the layer, the tensor of the data; null if a layer computes it.
void check_label_use(const InputDescription& input, const Layer& layer, std::span<const TensorDescription* const> data);

// Throws kInvalidJob or LayerError unless ids are looked up and nothing else is, in tables with a row for each id.
// `data`: as for check_label_use().
void check_ids(const InputDescription& input, const Layer& layer, std::span<const TensorDescription* const> data);

// Returns an issue for a model without parameters, and for each layer whose parameters no loss depends on. The graph
// must be free of other issues, because those can cut a layer off from the loss.
std::vector<GraphIssue> find_untrained(const Graph& graph, const std::vector<LayerDescription>& layers);

}  // namespace arbalest::dataflow
