#include "train/parallelism/parallelism_costs.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "dataflow/autodiff.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "options/sparse/graph_needed.h"
#include "options/synchronization/job_schemes.h"

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

TotalTraffic better_way(const LayerCosts& costs) {
  if (costs.better == Parallelism::kSplit) return {*costs.split, costs.split->seconds};
  return {costs.data, waiting_seconds(costs)};
}

// `pair`: of both layers, the first split by columns and the second by rows.
Parallelism better_for_two(const LayerCosts& first, const LayerCosts& second, const Traffic& pair) {
  if (pair.seconds < better_way(first).waiting_seconds + better_way(second).waiting_seconds) return Parallelism::kSplit;
  const bool are_whole = first.better == Parallelism::kData && second.better == Parallelism::kData;
  return are_whole ? Parallelism::kData : Parallelism::kEachAlone;
}

// A pair of dense layers, with the index of its second layer.
struct Pair {
  PairParallelism costs;
  std::size_t next = 0;
};

// Returns the pairs by their first layer.
std::vector<std::optional<Pair>> find_pairs(const Graph& graph, const std::vector<LayerSizes>& sizes,
                                            const std::vector<LayerCosts>& costs, const ParallelismCosts& of) {
  std::vector<std::optional<Pair>> pairs(sizes.size());
  for (std::size_t n = 0; n < sizes.size(); ++n) {
    const std::optional<std::size_t> next = costs[n].split ? next_dense(graph, n) : std::nullopt;
    if (!next) continue;
    const std::optional<Traffic> split = split_pair_traffic(sizes[n], sizes[*next], of.batch_size, of.devices);
    if (!split) continue;
    TotalTraffic data;
    for (const std::size_t layer : {n, *next}) add(data, costs[layer].data, waiting_seconds(costs[layer]));
    pairs[n] = {{.by_columns = sizes[n].name,
                 .by_rows = sizes[*next].name,
                 .data = data.traffic,
                 .waiting_seconds = data.waiting_seconds,
                 .split = *split,
                 .better = better_for_two(costs[n], costs[*next], *split)},
                *next};
  }
  return pairs;
}

TotalTraffic sum(TotalTraffic a, const TotalTraffic& b) {
  add(a, b.traffic, b.waiting_seconds);
  return a;
}

// Dense layers in a row are a chain, in which a layer may be alone, in a pair with the one before, or in a pair with
// the one behind. `best[l]` becomes the better of these for layer l and all behind it in its chain.
TotalTraffic best_of_all(const std::vector<LayerCosts>& costs, const std::vector<std::optional<Pair>>& pairs) {
  std::vector<TotalTraffic> best(costs.size());
  std::vector<bool> is_behind(costs.size());
  for (std::size_t l = costs.size(); l-- > 0;) {
    best[l] = better_way(costs[l]);
    if (!pairs[l]) continue;
    const std::size_t next = pairs[l]->next;
    is_behind[next] = true;
    best[l] = sum(best[l], best[next]);
    TotalTraffic paired{pairs[l]->costs.split, pairs[l]->costs.split.seconds};
    if (pairs[next]) paired = sum(paired, best[pairs[next]->next]);
    if (paired.waiting_seconds < best[l].waiting_seconds) best[l] = paired;
  }
  TotalTraffic total;
  for (std::size_t l = 0; l < costs.size(); ++l) {
    if (!is_behind[l]) total = sum(total, best[l]);
  }
  return total;
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
  require_replicas(job, "arbalest inspect --links");
  ParallelismCosts result;
  result.devices = devices;
  result.batch_size = job.training.batch_size;
  const std::vector<LayerSizes> sizes = layer_sizes(*job.graph, result.batch_size);
  const std::vector<LayerCosts> costs = layer_costs(sizes, result.batch_size, devices);
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    if (sizes[l].parameters == 0) continue;
    result.layers.push_back({sizes[l], costs[l]});
    add(result.data_parallel, costs[l].data, waiting_seconds(costs[l]));
  }
  const std::vector<std::optional<Pair>> pairs = find_pairs(*job.graph, sizes, costs, result);
  for (const std::optional<Pair>& pair : pairs) {
    if (pair) result.pairs.push_back(pair->costs);
  }
  result.each_the_better = best_of_all(costs, pairs);
  return result;
}

std::string scheme_warning(const JobOptions& job) {
  for (const sma::Options& options : schemes_of(job)) {
    if (options.scheme == sma::Scheme::kSSgd) continue;
    return fmt::format(
        "--links: the costs are those of s_sgd, the only scheme under which layers can be split; {} sends "
        "other messages",
        sma::name_of(options.scheme));
  }
  return "";
}

}  // namespace arbalest::jobs
