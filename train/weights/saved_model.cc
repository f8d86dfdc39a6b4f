#include "train/weights/saved_model.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "saved_model/safetensors.h"

namespace arbalest::jobs {

std::vector<dataflow::NamedTensor> read_finite_model(const std::string& path, const std::string& sha256) {
  std::vector<dataflow::NamedTensor> model = read_safetensors(path, sha256);
  for (const dataflow::NamedTensor& tensor : model) {
    if (std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); })) continue;
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "'{}': tensor '{}' has values that are not finite: the file is damaged", path, tensor.name);
  }
  return model;
}

int output_tensor(const dataflow::Graph& graph) {
  for (const dataflow::Graph::Node& node : graph.nodes()) {
    if (node.layer->role() == dataflow::LayerRole::kLoss && !node.training_only) return node.inputs[0];
  }
  engine::fail(engine::ErrorKind::kInternal, "internal error: a model without a loss");
}

std::string output_layer(const dataflow::Graph& graph) {
  const auto producer = std::ranges::find(graph.nodes(), output_tensor(graph), &dataflow::Graph::Node::output);
  ARBALEST_CHECK(producer != graph.nodes().end());
  return producer->name;
}

}  // namespace arbalest::jobs
