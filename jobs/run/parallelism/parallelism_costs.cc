#include "jobs/run/parallelism/parallelism_costs.h"

#include <algorithm>
#include <optional>

#include "dataflow/autodiff.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "jobs/options/sparse/graph_needed.h"

namespace arbalest::jobs {

namespace {

using dataflow::Graph;

bool is_dense(const Graph::Node& node) {
  return dynamic_cast<const dataflow::DenseLayer*>(node.layer.get()) != nullptr;
}

bool is_elementwise(const Graph::Node& node) {
  return node.layer->activation().has_value() ||
         dynamic_cast<const dataflow::DropoutLayer*>(node.layer.get()) != nullptr;
}

// Returns the only node that reads the tensor; none if there are several.
std::optional<std::size_t> only_reader(const Graph& graph, int tensor) {
  std::optional<std::size_t> reader;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::vector<int>& inputs = graph.nodes()[n].inputs;
    if (std::ranges::find(inputs, tensor) == inputs.end()) continue;
    if (reader) return std::nullopt;
    reader = n;
  }
  return reader;
}

// Returns the dense layer that reads nothing but elementwise functions of the node's output; none if there is no such
// layer.
std::optional<std::size_t> next_dense(const Graph& graph, std::size_t node) {
  std::optional<std::size_t> reader = only_reader(graph, graph.nodes()[node].output);
  while (reader && is_elementwise(graph.nodes()[*reader])) reader = only_reader(graph, graph.nodes()[*reader].output);
  return reader && is_dense(graph.nodes()[*reader]) ? reader : std::nullopt;
}

void add(TotalTraffic& total, const Traffic& traffic, double waiting_seconds) {
  total.traffic.bytes += traffic.bytes;
  total.traffic.seconds += traffic.seconds;
  total.waiting_seconds += waiting_seconds;
}

void find_pairs(const Graph& graph, const std::vector<LayerSizes>& sizes, const std::vector<LayerCosts>& costs,
                ParallelismCosts& result) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::optional<std::size_t> next = costs[n].split ? next_dense(graph, n) : std::nullopt;
    if (!next || !costs[*next].split) continue;
    TotalTraffic data;
    for (const std::size_t layer : {n, *next}) add(data, costs[layer].data, waiting_seconds(costs[layer]));
    const Traffic split = split_pair_traffic(sizes[n], sizes[*next], result.batch_size, result.devices);
    result.pairs.push_back({.by_columns = sizes[n].name,
                            .by_rows = sizes[*next].name,
                            .data = data.traffic,
                            .waiting_seconds = data.waiting_seconds,
                            .split = split,
                            .better = split.seconds < data.waiting_seconds ? Parallelism::kSplit : Parallelism::kData});
  }
}

}  // namespace

std::vector<LayerSizes> layer_sizes(const Graph& graph, std::int64_t batch_size) {
  const std::vector<engine::Shape> shapes = graph.shapes(batch_size);
  const dataflow::Backward backward = dataflow::derive_backward(graph);
  std::vector<LayerSizes> sizes;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Graph::Node& node = graph.nodes()[n];
    LayerSizes& layer = sizes.emplace_back();
    layer.name = node.label;
    layer.kind = node.layer->kind();
    for (const int input : node.inputs) {
      layer.inputs += shapes[static_cast<std::size_t>(input)].elements_per_example();
    }
    layer.outputs = shapes[static_cast<std::size_t>(node.output)].elements_per_example();
    for (const dataflow::ParameterSpec& parameter : Graph::parameters(node, shapes)) {
      if (parameter.is_trained()) layer.parameters += parameter.shape.elements();
    }
    layer.is_dense = is_dense(node);
    layer.has_input_gradient = std::ranges::any_of(
        node.inputs, [&](int input) { return backward.tensor_gradient[static_cast<std::size_t>(input)]; });
    layer.forward_flops = node.layer->forward_flops(Graph::input_shapes(node, shapes));
    const int passes = (layer.has_input_gradient ? 1 : 0) + (layer.parameters > 0 ? 1 : 0);
    if (backward.node[n]) layer.backward_flops = passes * layer.forward_flops;
  }
  return sizes;
}

ParallelismCosts parallelism_costs(const JobOptions& job, const AssumedDevices& devices) {
  require_graph(job, "arbalest inspect --links");
  ParallelismCosts result;
  result.devices = devices;
  result.batch_size = job.training.batch_size;
  const std::vector<LayerSizes> sizes = layer_sizes(*job.graph, result.batch_size);
  const std::vector<LayerCosts> costs = layer_costs(sizes, result.batch_size, devices);
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    if (sizes[l].parameters == 0) continue;
    result.layers.push_back({sizes[l], costs[l]});
    const double waiting = waiting_seconds(costs[l]);
    add(result.data_parallel, costs[l].data, waiting);
    if (costs[l].better == Parallelism::kSplit) {
      add(result.each_the_better, *costs[l].split, costs[l].split->seconds);
    } else {
      add(result.each_the_better, costs[l].data, waiting);
    }
  }
  find_pairs(*job.graph, sizes, costs, result);
  return result;
}

}  // namespace arbalest::jobs
