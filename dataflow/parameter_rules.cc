#include "dataflow/parameter_rules.h"

#include <algorithm>

#include "engine/base/error.h"

namespace arbalest::dataflow {

std::string parameter_name(const Graph::Node& node, const ParameterSpec& spec) { return node.name + "." + spec.name; }

std::vector<NamedParameter> named_parameters(const Graph& graph) {
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  std::vector<NamedParameter> parameters;
  for (const Graph::Node& node : graph.nodes()) {
    for (ParameterSpec& spec : Graph::parameters(node, shapes)) {
      parameters.push_back({parameter_name(node, spec), std::move(spec)});
    }
  }
  return parameters;
}

Graph with_rules(const Graph& graph, const ParameterRuleOf& rule_of) {
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  Graph ruled = graph;
  bool trains = false;
  for (Graph::Node& node : ruled.nodes_) {
    node.rules.clear();
    std::size_t statistics = 0;
    std::size_t frozen_statistics = 0;
    for (const ParameterSpec& spec : node.layer->parameters(Graph::input_shapes(node, shapes))) {
      node.rules.push_back(rule_of(parameter_name(node, spec)));
      statistics += spec.is_statistic() ? 1 : 0;
      frozen_statistics += spec.is_statistic() && node.rules.back().is_frozen ? 1 : 0;
      trains |= !spec.is_statistic() && !node.rules.back().is_frozen;
    }
    ARBALEST_CHECK(frozen_statistics == 0 || frozen_statistics == statistics);
    if (frozen_statistics > 0) node.layer = node.layer->with_frozen_statistics();
    ARBALEST_CHECK(node.layer != nullptr);
  }
  ARBALEST_CHECK(trains);
  return ruled;
}

}  // namespace arbalest::dataflow
