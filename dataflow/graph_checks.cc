#include "dataflow/graph_checks.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "dataflow/autodiff.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::Shape;

void check_label_use(const InputDescription& input, const Layer& layer,
                     std::span<const TensorDescription* const> data) {
  const bool is_hidden = layer.role() == LayerRole::kHidden;
  for (std::size_t k = 0; k < data.size(); ++k) {
    const bool wants_label = !is_hidden && k == 1;
    if (!wants_label && data[k] == &input.label()) {
      engine::fail(ErrorKind::kInvalidJob, "reads \"label\" where it needs a tensor of features");
    }
  }
  if (is_hidden) return;
  const bool wants_numbers = layer.label_type() == engine::DType::kFloat32;
  if (wants_numbers && !input.predicts_numbers()) {
    engine::fail(ErrorKind::kInvalidJob,
                 "compares with numbers, but the labels of the data are classes; use softmax_cross_entropy {{}}");
  }
  if (!wants_numbers && input.predicts_numbers()) {
    engine::fail(ErrorKind::kInvalidJob,
                 "compares with classes, but the labels of the data are numbers; use squared_error {{}}");
  }
}

void check_ids(const InputDescription& input, const Layer& layer, std::span<const TensorDescription* const> data) {
  const auto are_ids = [&](const TensorDescription* tensor) {
    return tensor != nullptr && tensor != &input.label() && tensor->dtype == engine::DType::kInt32;
  };
  const auto found = std::ranges::find_if(data, are_ids);
  const std::optional<Layer::LookUp> look_up = layer.look_up();
  if (found != data.end() && !look_up) {
    engine::fail(ErrorKind::kInvalidJob, "reads \"{}\" as if they were numbers; look them up by embedding",
                 (*found)->name);
  }
  if (!look_up) return;
  if (found == data.end()) {
    engine::fail(ErrorKind::kInvalidJob,
                 "looks up ids, which its input does not have; let it read \"ids\", of data {{ ratings {{ ... }} }}");
  }
  const TensorDescription& ids = **found;
  const std::int64_t columns = ids.shape.elements();
  if (look_up->column >= columns) {
    throw LayerError("column", fmt::format("reads column {}, but the data has {} of them, counted from 0",
                                           look_up->column, columns));
  }
  const std::int64_t limit = ids.limit(look_up->column);
  if (look_up->rows < limit) {
    throw LayerError("rows", fmt::format("has {} rows, but column {} of the data has {} ids; write rows: {}",
                                         look_up->rows, look_up->column, limit, limit));
  }
}

std::vector<GraphIssue> find_untrained(const Graph& graph, const std::vector<LayerDescription>& layers) {
  const Backward backward = derive_backward(graph);
  const std::vector<Shape> shapes = graph.shapes(1);
  std::vector<GraphIssue> issues;
  bool has_parameters = false;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Graph::Node& node = graph.nodes()[n];
    if (Graph::parameters(node, shapes).empty()) continue;
    has_parameters = true;
    if (backward.node[n]) continue;
    const auto description = std::ranges::find(layers, node.name, &LayerDescription::name);
    issues.push_back({static_cast<int>(description - layers.begin()), -1,
                      fmt::format("layer '{}': its parameters would never be trained, because no loss depends "
                                  "on its output; let a layer on the way to the loss read it, or remove it",
                                  node.name)});
  }
  if (!has_parameters) {
    issues.push_back({-1, -1,
                      "the model has no parameters, so there is nothing to train; add a layer that has some, as in "
                      "dense { units: 10 }"});
  }
  return issues;
}

}  // namespace arbalest::dataflow
