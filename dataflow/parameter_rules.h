// Rules of training for single parameters: which ones it leaves as they are, and factors of the learning rate.
#pragma once

#include <string>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// The name of a parameter in files and rules: "conv1.weight".
std::string parameter_name(const Graph::Node& node, const ParameterSpec& spec);

struct NamedParameter {
  std::string name;
  ParameterSpec spec;
};

// All parameters of the graph, in the order of files.
std::vector<NamedParameter> named_parameters(const Graph& graph);

// Returns the graph under these rules. A layer whose running statistics are frozen normalizes with them in training,
// too, as torch.nn.BatchNorm2d.eval() does. The statistics of a layer must be frozen together, and at least one
// parameter must be left to train.
Graph with_rules(const Graph& graph, const ParameterRuleOf& rule_of);

}  // namespace arbalest::dataflow
