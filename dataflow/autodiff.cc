#include "dataflow/autodiff.h"

#include <algorithm>

namespace arbalest::dataflow {

Backward derive_backward(const Graph& graph) {
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  const auto tensors = static_cast<std::size_t>(graph.tensors());
  const auto is_set = [](const std::vector<bool>& flags) {
    return [&flags](int tensor) { return flags[static_cast<std::size_t>(tensor)]; };
  };

  std::vector<bool> trains;                         // by node: has a parameter that is trained
  std::vector<bool> on_parameters(tensors, false);  // depends on such a parameter
  for (const Graph::Node& node : graph.nodes()) {
    trains.push_back(std::ranges::any_of(Graph::parameters(node, shapes), &ParameterSpec::is_trained));
    on_parameters[static_cast<std::size_t>(node.output)] =
        trains.back() || std::ranges::any_of(node.inputs, is_set(on_parameters));
  }

  std::vector<bool> feeds_loss(tensors, false);
  Backward backward{std::vector<bool>(graph.nodes().size(), false), std::vector<bool>(tensors, false)};
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Graph::Node& node = graph.nodes()[n];
    const bool reaches_loss =
        node.layer->role() == LayerRole::kLoss || feeds_loss[static_cast<std::size_t>(node.output)];
    if (!reaches_loss) continue;
    for (const int input : node.inputs) {
      const auto tensor = static_cast<std::size_t>(input);
      feeds_loss[tensor] = true;
      backward.tensor_gradient[tensor] = on_parameters[tensor];
    }
    backward.node[n] = trains[n] || std::ranges::any_of(node.inputs, is_set(backward.tensor_gradient));
  }
  return backward;
}

std::vector<bool> needed_at_inference(const Graph& graph) {
  std::vector<bool> is_read(static_cast<std::size_t>(graph.tensors()), false);
  std::vector<bool> needed(graph.nodes().size(), false);
  for (std::size_t n = needed.size(); n-- > 0;) {
    const Graph::Node& node = graph.nodes()[n];
    const bool is_result = node.layer->role() != LayerRole::kHidden && !node.training_only;
    needed[n] = is_result || is_read[static_cast<std::size_t>(node.output)];
    for (const int input : node.inputs) {
      if (needed[n]) is_read[static_cast<std::size_t>(input)] = true;
    }
  }
  return needed;
}

}  // namespace arbalest::dataflow
