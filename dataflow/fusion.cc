#include "dataflow/fusion.h"

namespace arbalest::dataflow {

namespace {

std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(static_cast<std::size_t>(graph.tensors()), 0);
  for (const Graph::Node& node : graph.nodes()) {
    for (const int input : node.inputs) ++readers[static_cast<std::size_t>(input)];
  }
  return readers;
}

}  // namespace

Graph fuse(const Graph& graph) {
  const std::vector<int> readers = count_readers(graph);
  std::vector<int> renumbered(static_cast<std::size_t>(graph.tensors()));  // by the given graph's tensor numbers
  renumbered[Graph::kImage] = Graph::kImage;
  renumbered[Graph::kLabel] = Graph::kLabel;

  Graph fused;
  fused.input_ = graph.input_;
  // What alone feeds `node`, if that is an activation.
  const auto find_producer = [&](const Graph::Node& node) -> Graph::Node* {
    const auto read = static_cast<std::size_t>(node.inputs[0]);
    if (!node.layer->activation().has_value() || renumbered[read] <= Graph::kLabel || readers[read] != 1) {
      return nullptr;
    }
    return &fused.nodes_[static_cast<std::size_t>(renumbered[read] - Graph::kLabel - 1)];
  };

  for (const Graph::Node& node : graph.nodes_) {
    int& output = renumbered[static_cast<std::size_t>(node.output)];
    Graph::Node* producer = find_producer(node);
    if (producer != nullptr) {
      if (auto both = producer->layer->with_activation(*node.layer->activation())) {
        producer->layer = std::move(both);
        producer->label += "+" + node.name;
        output = producer->output;
        continue;
      }
    }
    Graph::Node kept = node;
    for (int& input : kept.inputs) input = renumbered[static_cast<std::size_t>(input)];
    kept.output = output = fused.tensors();
    fused.nodes_.push_back(std::move(kept));
  }
  return fused;
}

}  // namespace arbalest::dataflow
