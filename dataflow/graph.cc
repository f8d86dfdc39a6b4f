#include "dataflow/graph.h"

#include <algorithm>
#include <map>
#include <optional>

#include "dataflow/layers/classification.h"
#include "engine/nearest_name.h"

namespace arbalest::dataflow {

using engine::Shape;

namespace {

constexpr const char* kInputNames[] = {"image", "label"};

std::string join_messages(const std::vector<GraphIssue>& issues) {
  std::string text;
  for (const GraphIssue& issue : issues) text += (text.empty() ? "" : "\n") + issue.message;
  return text;
}

std::vector<Shape> graph_input_shapes(const InputDescription& input, std::int64_t batch) {
  Shape image{batch};
  for (const std::int64_t extent : input.image) image.append(extent);
  return {image, Shape{batch}};
}

// Collects issues while it sorts and checks the layers of one model.
class Builder {
 public:
  Builder(const InputDescription& input, const std::vector<LayerDescription>& layers)
      : input_(input), layers_(layers) {}

  std::vector<Graph::Node> build() {
    name_layers();
    resolve_inputs();
    if (issues_.empty()) sort();
    if (issues_.empty()) infer_shapes();
    if (issues_.empty()) check_roles();
    if (!issues_.empty()) throw GraphError(std::move(issues_));
    return std::move(nodes_);
  }

 private:
  int count() const { return static_cast<int>(layers_.size()); }
  const LayerDescription& layer(int index) const { return layers_[static_cast<std::size_t>(index)]; }

  template <typename... Args>
  void report(int index, int input, fmt::format_string<Args...> format, Args&&... args) {
    issues_.push_back({index, input, fmt::format(format, std::forward<Args>(args)...)});
  }

  void name_layers() {
    if (layers_.empty()) report(-1, -1, "the model has no layers");
    for (int i = 0; i < count(); ++i) {
      const std::string& name = layer(i).name;
      if (name.empty()) {
        report(i, -1, "layer {} has no name", i + 1);
      } else if (std::ranges::find(kInputNames, name) != std::end(kInputNames)) {
        report(i, -1, "layer '{}': the name belongs to the model's input; choose another", name);
      } else if (!by_name_.emplace(name, i).second) {
        report(i, -1, "layer '{}': another layer has this name", name);
      }
    }
  }

  // sources_[i][k]: -1 - graph input, or the index of the layer that input k of layer i reads.
  void resolve_inputs() {
    std::vector<std::string> known(std::begin(kInputNames), std::end(kInputNames));
    for (const auto& [name, index] : by_name_) known.push_back(name);
    for (int i = 0; i < count(); ++i) {
      const LayerDescription& description = layer(i);
      std::vector<int>& sources = sources_.emplace_back();
      const int expected = description.layer->input_count();
      if (static_cast<int>(description.inputs.size()) != expected) {
        report(i, -1, "layer '{}': a {} layer reads {} input{}, not {}", description.name, description.layer->kind(),
               expected, expected == 1 ? "" : "s", description.inputs.size());
      }
      for (int k = 0; k < static_cast<int>(description.inputs.size()); ++k) {
        const std::string& name = description.inputs[static_cast<std::size_t>(k)];
        if (name == kInputNames[Graph::kImage] || name == kInputNames[Graph::kLabel]) {
          sources.push_back(name == kInputNames[Graph::kImage] ? kImageSource : kLabelSource);
        } else if (const auto found = by_name_.find(name); found != by_name_.end()) {
          sources.push_back(found->second);
        } else {
          report(i, k, "layer '{}' reads '{}', which is neither a layer nor \"image\" or \"label\"{}", description.name,
                 name, engine::did_you_mean(name, known));
        }
      }
    }
  }

  // Each layer after its inputs, else in the given order.
  void sort() {
    std::vector<bool> placed(layers_.size(), false);
    for (bool progress = true; progress;) {
      progress = false;
      for (int i = 0; i < count(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool ready = !placed[at] && std::ranges::all_of(sources_[at], [&](int source) {
          return source < 0 || placed[static_cast<std::size_t>(source)];
        });
        if (!ready) continue;
        placed[at] = true;
        order_.push_back(i);
        progress = true;
      }
    }
    for (int i = 0; i < count(); ++i) {
      if (!placed[static_cast<std::size_t>(i)]) {
        report(i, -1, "layer '{}' is part of a cycle, or reads from one: it depends on its own output", layer(i).name);
      }
    }
  }

  // Layers behind one that failed are left out: their shapes are unknown.
  void infer_shapes() {
    std::vector<std::optional<Shape>> shapes;
    for (const Shape& shape : graph_input_shapes(input_, 1)) shapes.emplace_back(shape);
    std::vector<int> tensor_of(layers_.size());
    for (const int i : order_) {
      const auto at = static_cast<std::size_t>(i);
      Graph::Node node{layer(i).name, layer(i).layer, {}, static_cast<int>(shapes.size())};
      std::vector<Shape> inputs;
      for (const int source : sources_[at]) {
        node.inputs.push_back(source < 0 ? -1 - source : tensor_of[static_cast<std::size_t>(source)]);
        if (const auto& shape = shapes[static_cast<std::size_t>(node.inputs.back())]) inputs.push_back(*shape);
      }
      tensor_of[at] = node.output;
      shapes.emplace_back();
      if (inputs.size() == node.inputs.size()) {
        try {
          check_label_use(node);
          shapes.back() = node.layer->output_shape(inputs);
          check_classes(node, inputs);
        } catch (const engine::Error& error) {
          report(i, -1, "layer '{}' ({}): {}", node.name, node.layer->kind(), error.what());
        }
      }
      nodes_.push_back(std::move(node));
    }
  }

  static void check_label_use(const Graph::Node& node) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool wants_label = node.layer->role() != LayerRole::kHidden && k == 1;
      if (!wants_label && node.inputs[k] == Graph::kLabel) {
        engine::fail(engine::ErrorKind::kInvalidJob, "reads \"label\" where it needs a tensor of features");
      }
    }
  }

  void check_classes(const Graph::Node& node, const std::vector<Shape>& inputs) const {
    if (node.layer->role() == LayerRole::kHidden || inputs[0][1] == input_.classes) return;
    engine::fail(engine::ErrorKind::kInvalidJob, "gets {} logits per example, but the data has {} classes",
                 inputs[0][1], input_.classes);
  }

  void check_roles() {
    std::vector<int> readers(nodes_.size() + 2, 0);
    for (const Graph::Node& node : nodes_) {
      for (const int input : node.inputs) ++readers[static_cast<std::size_t>(input)];
    }
    std::vector<int> losses;
    bool has_metric = false;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const Graph::Node& node = nodes_[n];
      const int index = order_[n];
      const bool is_read = readers[static_cast<std::size_t>(node.output)] > 0;
      if (node.layer->role() == LayerRole::kHidden) {
        if (!is_read) report(index, -1, "layer '{}': nobody reads its output; remove it or use it", node.name);
        continue;
      }
      if (is_read) report(index, -1, "layer '{}': its output is a result and cannot feed other layers", node.name);
      if (node.layer->role() == LayerRole::kLoss) losses.push_back(index);
      if (node.layer->role() == LayerRole::kMetric) {
        if (has_metric) report(index, -1, "layer '{}': the model has an accuracy layer already", node.name);
        has_metric = true;
      }
    }
    if (losses.empty()) {
      report(-1, -1, "the model has no loss; end it with softmax_cross_entropy {{}} reading the logits and \"label\"");
    }
    for (std::size_t i = 1; i < losses.size(); ++i) {
      report(losses[i], -1, "layer '{}': the model has a loss already ('{}')", layer(losses[i]).name,
             layer(losses[0]).name);
    }
    if (issues_.empty() && !has_metric) add_accuracy();
  }

  // Every classifier is judged by its accuracy, whether the model asks for it or not.
  void add_accuracy() {
    const auto loss =
        std::ranges::find_if(nodes_, [](const Graph::Node& node) { return node.layer->role() == LayerRole::kLoss; });
    std::string name = "accuracy";
    while (by_name_.contains(name)) name += "_";
    const int output = static_cast<int>(nodes_.size()) + 2;
    nodes_.push_back({name, std::make_shared<AccuracyLayer>(), loss->inputs, output});
  }

  static constexpr int kImageSource = -1 - Graph::kImage;
  static constexpr int kLabelSource = -1 - Graph::kLabel;

  const InputDescription& input_;
  const std::vector<LayerDescription>& layers_;
  std::map<std::string, int> by_name_;
  std::vector<std::vector<int>> sources_;
  std::vector<int> order_;
  std::vector<Graph::Node> nodes_;
  std::vector<GraphIssue> issues_;
};

}  // namespace

GraphError::GraphError(std::vector<GraphIssue> issues)
    : Error(engine::ErrorKind::kInvalidJob, join_messages(issues)), issues_(std::move(issues)) {}

Graph Graph::build(const InputDescription& input, const std::vector<LayerDescription>& layers) {
  Graph graph;
  graph.input_ = input;
  graph.nodes_ = Builder(input, layers).build();
  return graph;
}

std::vector<Shape> Graph::shapes(std::int64_t batch) const {
  std::vector<Shape> shapes = graph_input_shapes(input_, batch);
  for (const Node& node : nodes_) shapes.push_back(node.layer->output_shape(input_shapes(node, shapes)));
  return shapes;
}

std::vector<Shape> Graph::input_shapes(const Node& node, const std::vector<Shape>& shapes) {
  std::vector<Shape> inputs;
  for (const int input : node.inputs) inputs.push_back(shapes[static_cast<std::size_t>(input)]);
  return inputs;
}

}  // namespace arbalest::dataflow
