#include "dataflow/fusion.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace arbalest::dataflow {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

constexpr int kNone = -1;

// Number of readers of each tensor, by tensor: the nodes, and the caller, who reads `kept` (or kNone).
std::vector<int> count_readers(const Graph& graph, int kept) {
  std::vector<int> readers(at(graph.tensors()), 0);
  for (const Graph::Node& node : graph.nodes()) {
    for (const int input : node.inputs) ++readers[at(input)];
  }
  if (kept != kNone) ++readers[at(kept)];
  return readers;
}

// The node that computes `tensor`, which is no input of the graph.
int producer_of(const Graph& graph, int tensor) { return tensor - graph.inputs(); }

// New tensor numbers by old ones. Those of the graph's inputs stay; the others are still unset.
std::vector<int> start_renumbering(const Graph& graph) {
  std::vector<int> renumbered(at(graph.tensors()));
  std::iota(renumbered.begin(), renumbered.begin() + graph.inputs(), 0);
  return renumbered;
}

}  // namespace

// Merges activations into the layers that they read from. `kept`: the tensor that the caller reads, or kNone; becomes
// its number in the new graph.
Graph fuse_activations(const Graph& graph, int& kept) {
  const std::vector<int> readers = count_readers(graph, kept);
  std::vector<int> renumbered = start_renumbering(graph);
  Graph fused;
  fused.input_ = graph.input_;
  fused.metrics_ = graph.metrics_;
  // The layer that `node`, an activation, reads from, if `node` is its only reader; else null.
  const auto find_producer = [&](const Graph::Node& node) -> Graph::Node* {
    const std::size_t read = at(node.inputs[0]);
    if (!node.layer->activation().has_value() || renumbered[read] < graph.inputs() || readers[read] != 1) {
      return nullptr;
    }
    return &fused.nodes_[at(producer_of(fused, renumbered[read]))];
  };

  for (const Graph::Node& node : graph.nodes_) {
    int& output = renumbered[at(node.output)];
    Graph::Node* producer = find_producer(node);
    if (producer != nullptr) {
      if (auto both = producer->layer->with_activation(*node.layer->activation())) {
        producer->layer = std::move(both);
        producer->label += "+" + node.name;
        output = producer->output;
        continue;
      }
    }
    Graph::Node copy = node;
    for (int& input : copy.inputs) input = renumbered[at(input)];
    copy.output = output = fused.tensors();
    fused.nodes_.push_back(std::move(copy));
  }
  if (kept != kNone) kept = renumbered[at(kept)];
  return fused;
}

// Merges sums into the layers that feed them. The layer moves to the sum's place. Of two layers that could take over
// the sum, the later one does. No layer moves past one with parameters, because that would change the order of
// parameters. `kept`: as in fuse_activations.
Graph fuse_sums(const Graph& graph, int& kept) {
  const std::vector<int> readers = count_readers(graph, kept);
  // by node: the layer that takes the sum's place
  std::vector<const Graph::Node*> taken_over(graph.nodes_.size(), nullptr);
  std::vector<bool> is_moved(graph.nodes_.size(), false);
  std::vector<std::shared_ptr<const Layer>> layers(graph.nodes_.size());
  std::vector<bool> has_parameters;  // by node
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  for (const Graph::Node& node : graph.nodes_) {
    has_parameters.push_back(!Graph::parameters(node, shapes).empty());
  }
  for (std::size_t n = 0; n < graph.nodes_.size(); ++n) {
    const Graph::Node& sum = graph.nodes_[n];
    const auto f = sum.layer->activation_of_sum();
    if (!f.has_value()) continue;
    std::vector<int> addends = sum.inputs;
    std::ranges::sort(addends, std::greater());
    for (const int addend : addends) {
      if (addend < graph.inputs() || readers[at(addend)] != 1) continue;
      const std::size_t producer = at(producer_of(graph, addend));
      if (std::any_of(has_parameters.begin() + producer_of(graph, addend) + 1,
                      has_parameters.begin() + producer_of(graph, sum.output), std::identity())) {
        continue;
      }
      layers[n] = graph.nodes_[producer].layer->with_addend(*f);
      if (layers[n] == nullptr) continue;
      taken_over[n] = &graph.nodes_[producer];
      is_moved[producer] = true;
      break;
    }
  }

  std::vector<int> renumbered = start_renumbering(graph);
  Graph fused;
  fused.input_ = graph.input_;
  fused.metrics_ = graph.metrics_;
  for (std::size_t n = 0; n < graph.nodes_.size(); ++n) {
    if (is_moved[n]) continue;
    Graph::Node copy = graph.nodes_[n];
    if (const Graph::Node* first = taken_over[n]) {
      const int other = copy.inputs[copy.inputs[0] == first->output ? 1 : 0];
      const std::string label = first->label + "+" + copy.label;
      copy = *first;
      copy.layer = layers[n];
      copy.label = label;
      copy.inputs.push_back(other);
    }
    for (int& input : copy.inputs) input = renumbered[at(input)];
    copy.output = renumbered[at(graph.nodes_[n].output)] = fused.tensors();
    fused.nodes_.push_back(std::move(copy));
  }
  if (kept != kNone) kept = renumbered[at(kept)];
  return fused;
}

// Merges the metric into the main loss if both read the same tensors. `kept`: as in fuse_activations; a metric's output
// becomes the loss's.
Graph fuse_metric(const Graph& graph, int& kept) {
  const auto metric =
      std::ranges::find_if(graph.nodes_, [](const Graph::Node& node) { return !node.layer->counted_ranks().empty(); });
  if (metric == graph.nodes_.end()) return graph;
  const auto loss = std::ranges::find_if(graph.nodes_, [&](const Graph::Node& node) {
    return node.layer->role() == LayerRole::kLoss && !node.training_only && node.inputs == metric->inputs;
  });
  if (loss == graph.nodes_.end()) return graph;
  const auto both = loss->layer->with_counted_ranks(metric->layer->counted_ranks());
  if (both == nullptr) return graph;

  std::vector<int> renumbered = start_renumbering(graph);
  Graph fused;
  fused.input_ = graph.input_;
  fused.metrics_ = graph.metrics_;
  for (const Graph::Node& node : graph.nodes_) {
    if (&node == &*metric) continue;
    Graph::Node copy = node;
    if (&node == &*loss) {
      copy.layer = both;
      copy.label += "+" + metric->label;
    }
    for (int& input : copy.inputs) input = renumbered[at(input)];
    copy.output = renumbered[at(node.output)] = fused.tensors();
    fused.nodes_.push_back(std::move(copy));
  }
  renumbered[at(metric->output)] = renumbered[at(loss->output)];
  if (kept != kNone) kept = renumbered[at(kept)];
  return fused;
}

FusedGraph fuse(const Graph& graph, const std::string& kept) {
  const auto node = std::ranges::find(graph.nodes(), kept, &Graph::Node::name);
  int tensor = node == graph.nodes().end() ? kNone : node->output;
  FusedGraph fused{.graph = fuse_activations(graph, tensor), .kept = kept};
  fused.graph = fuse_sums(fused.graph, tensor);
  fused.graph = fuse_metric(fused.graph, tensor);
  if (tensor != kNone) fused.kept = fused.graph.nodes()[at(producer_of(fused.graph, tensor))].name;
  return fused;
}

Graph fuse(const Graph& graph) { return fuse(graph, "").graph; }

}  // namespace arbalest::dataflow
