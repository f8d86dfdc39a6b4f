#include "dataflow/graph.h"

#include "dataflow/graph_builder.h"
#include "dataflow/graph_checks.h"

namespace arbalest::dataflow {

using engine::Shape;

namespace {

std::string join_messages(const std::vector<GraphIssue>& issues) {
  std::string text;
  for (const GraphIssue& issue : issues) text += (text.empty() ? "" : "\n") + issue.message;
  return text;
}

}  // namespace

GraphError::GraphError(std::vector<GraphIssue> issues)
    : Error(engine::ErrorKind::kInvalidJob, join_messages(issues)), issues_(std::move(issues)) {}

Graph Graph::build(const InputDescription& input, const std::vector<LayerDescription>& layers) {
  Graph graph;
  graph.input_ = input;
  graph.nodes_ = build_nodes(input, layers);
  for (std::size_t n = 0; n < graph.nodes_.size(); ++n) {
    graph.nodes_[n].key = static_cast<std::uint32_t>(n);
    graph.nodes_[n].label = graph.nodes_[n].name;
  }
  std::vector<GraphIssue> untrained = find_untrained(graph, layers);
  if (!untrained.empty()) throw GraphError(std::move(untrained));
  return graph;
}

std::vector<Shape> Graph::shapes(std::int64_t batch) const {
  std::vector<Shape> shapes = graph_input_shapes(input_, batch);
  for (const Node& node : nodes_) shapes.push_back(node.layer->output_shape(input_shapes(node, shapes)));
  return shapes;
}

std::vector<ParameterSpec> Graph::parameters(const Node& node, const std::vector<Shape>& shapes) {
  std::vector<ParameterSpec> specs = node.layer->parameters(input_shapes(node, shapes));
  ARBALEST_CHECK(node.rules.empty() || node.rules.size() == specs.size());
  for (std::size_t p = 0; p < node.rules.size(); ++p) {
    specs[p].is_frozen = node.rules[p].is_frozen;
    specs[p].learning_rate_multiplier *= node.rules[p].learning_rate_multiplier;
  }
  return specs;
}

std::vector<Shape> Graph::input_shapes(const Node& node, const std::vector<Shape>& shapes) {
  std::vector<Shape> inputs;
  for (const int input : node.inputs) inputs.push_back(shapes[static_cast<std::size_t>(input)]);
  return inputs;
}

}  // namespace arbalest::dataflow
