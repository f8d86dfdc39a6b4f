#include "options/readers/graph_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/models/model_reader.h"
#include "options/readers/size_check.h"

namespace arbalest::jobs {

namespace {

class GraphReader {
 public:
  GraphReader(const v1::Model& model, const GraphContext& context, dataflow::FieldIssues& issues)
      : model_(model), context_(context), issues_(issues) {}

  std::shared_ptr<const dataflow::Graph> read() {
    dataflow::FieldIssues model_issues;
    const auto layers = read_model(model_, context_.input.value_or(dataflow::InputDescription{}), model_issues);
    for (const auto& issue : model_issues.all()) {
      issues_.add(issue.path.empty() ? "model" : "model." + issue.path, issue.message);
    }
    const auto listed = static_cast<std::size_t>(model_.layers_size());
    if (model_.has_accuracy() && layers.size() > listed) accuracy_ = static_cast<int>(layers.size()) - 1;
    // Without data the shapes are unknown; without layers there is nothing to fit together.
    if (!context_.input.has_value() || layers.empty()) return nullptr;
    if (model_.has_zoo() && !model_issues.empty()) return nullptr;
    try {
      auto graph = std::make_shared<dataflow::Graph>(dataflow::Graph::build(*context_.input, layers));
      if (context_.batch_size.has_value()) {
        check_sizes_of(*graph, layers);
        check_batch_norm(*graph, *context_.batch_size);
      }
      return graph;
    } catch (const dataflow::GraphError& error) {
      for (const dataflow::GraphIssue& issue : error.issues()) issues_.add_another(path_of(issue), issue.message);
      return nullptr;
    }
  }

 private:
  // `index`: index in the model's list; -1: the model as a whole.
  std::string layer_path(int index) const {
    if (index >= 0 && index == accuracy_) return "model.accuracy";
    if (model_.has_zoo()) return "model.zoo";
    return index < 0 ? "model" : fmt::format("model.layers[{}]", index);
  }

  // Path of a field of the layer's kind, "conv.kernel"; "" if the kind has no such field.
  static std::string path_within(const v1::Layer& layer, const std::string& field) {
    const auto* kind = layer.GetReflection()->GetOneofFieldDescriptor(layer, layer.GetDescriptor()->oneof_decl(0));
    if (kind == nullptr || kind->message_type()->FindFieldByName(field) == nullptr) return "";
    const google::protobuf::Message& message = layer.GetReflection()->GetMessage(layer, kind);
    const auto* for_both = message.GetDescriptor()->FindFieldByName(field);
    const auto* for_height = message.GetDescriptor()->FindFieldByName(field + "_height");
    const bool is_split = for_height != nullptr && !message.GetReflection()->HasField(message, for_both);
    return kind->name() + "." + (is_split ? for_height->name() : field);
  }

  std::string field_path(int index, const std::string& field) const {
    if (index >= 0 && index == accuracy_) return layer_path(index) + (field.empty() ? "" : "." + field);
    if (index < 0 || model_.has_zoo()) return layer_path(index);
    const std::string within = path_within(model_.layers(index), field);
    return within.empty() ? layer_path(index) : layer_path(index) + "." + within;
  }

  std::string path_of(const dataflow::GraphIssue& issue) const {
    if (issue.layer >= 0 && issue.input >= 0) return fmt::format("{}.input[{}]", layer_path(issue.layer), issue.input);
    return field_path(issue.layer, issue.field);
  }

  // Path of the field that sets the width of a layer.
  std::string width_path(int index, const dataflow::LayerDescription& layer) const {
    if (model_.zoo().has_mlp()) {
      const int hidden = model_.zoo().mlp().hidden_size();  // each gives a dense layer and its activation
      return fmt::format("model.zoo.mlp.hidden[{}]", std::min(index / 2, hidden - 1));
    }
    return field_path(index, layer.layer->width_field());
  }

  void check_sizes_of(const dataflow::Graph& graph, const std::vector<dataflow::LayerDescription>& layers) {
    for (const SizeIssue& issue : check_sizes(graph, *context_.batch_size)) {
      const auto layer = std::ranges::find(layers, issue.layer, &dataflow::LayerDescription::name);
      const bool is_listed = layer != layers.end();  // false for the accuracy layer that every model gets
      const std::string path =
          is_listed ? width_path(static_cast<int>(layer - layers.begin()), *layer) : layer_path(-1);
      issues_.add_another(path, issue.message);
    }
  }

  // A single number has no variance.
  void check_batch_norm(const dataflow::Graph& graph, std::int64_t batch_size) {
    const std::vector<engine::Shape> shapes = graph.shapes(batch_size);
    for (const dataflow::Graph::Node& node : graph.nodes()) {
      if (node.layer->kind() != "batch_norm") continue;
      const engine::Shape& shape = shapes[static_cast<std::size_t>(node.inputs[0])];
      if (shape.elements() / shape[1] > 1) continue;
      issues_.add("training.batch_size",
                  fmt::format("batch_size must be at least 2, not {}: layer '{}' (batch norm) has only one number of "
                              "each channel to learn from",
                              batch_size, node.name));
      return;
    }
  }

  const v1::Model& model_;
  int accuracy_ = -1;  // index of the layer that model.accuracy has added, if it has
  const GraphContext& context_;
  dataflow::FieldIssues& issues_;
};

}  // namespace

std::shared_ptr<const dataflow::Graph> read_graph(const v1::Model& model, const GraphContext& context,
                                                  dataflow::FieldIssues& issues) {
  return GraphReader(model, context, issues).read();
}

}  // namespace arbalest::jobs
