#include "jobs/interchange/export/model_output.h"

namespace arbalest::jobs {

std::vector<bool> needed_for(const dataflow::Graph& graph, int tensor) {
  std::vector<bool> needed_tensors(static_cast<std::size_t>(graph.tensors()), false);
  needed_tensors[static_cast<std::size_t>(tensor)] = true;
  std::vector<bool> needed(graph.nodes().size(), false);
  for (std::size_t n = needed.size(); n-- > 0;) {
    const dataflow::Graph::Node& node = graph.nodes()[n];
    needed[n] = needed_tensors[static_cast<std::size_t>(node.output)];
    if (!needed[n]) continue;
    for (const int input : node.inputs) needed_tensors[static_cast<std::size_t>(input)] = true;
  }
  return needed;
}

}  // namespace arbalest::jobs
