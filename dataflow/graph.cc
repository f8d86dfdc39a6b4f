#include "dataflow/graph.h"

#include <algorithm>

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

// Appends the metrics of a loss or metric layer, whose sums begin at `first_sum`.
void append_metrics(Metrics& metrics, const Graph::Node& node, const std::vector<Shape>& shapes, int first_sum) {
  for (Metric& metric : node.layer->metrics(Graph::input_shapes(node, shapes))) {
    metric.sum += first_sum;
    ARBALEST_CHECK(metric.sum < engine::kMaxSums);
    metrics.push_back(std::move(metric));
  }
}

// A loss writes one sum, and the metric layer those behind it (Plan::forward).
Metrics metrics_of(const Graph& graph) {
  const std::vector<Shape> shapes = graph.shapes(1);
  Metrics metrics;
  for (const Graph::Node& node : graph.nodes()) {
    if (node.layer->role() == LayerRole::kLoss && !node.training_only) {
      append_metrics(metrics, node, shapes, engine::kLossSum);
    }
  }
  for (const Graph::Node& node : graph.nodes()) {
    if (node.layer->role() == LayerRole::kMetric) append_metrics(metrics, node, shapes, engine::kLossSum + 1);
  }
  const bool adds_losses = std::ranges::any_of(graph.nodes(), [](const Graph::Node& node) {
    return node.layer->role() == LayerRole::kLoss && node.training_only;
  });
  for (Metric& metric : metrics) {  // training adds the other losses to the loss
    if (adds_losses && metric.sum == engine::kLossSum && metric.form == MetricForm::kRootOfMean)
      metric.in_training = false;
  }
  return metrics;
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
  graph.metrics_ = metrics_of(graph);
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
