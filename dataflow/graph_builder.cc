#include "dataflow/graph_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "dataflow/graph_checks.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/base/nearest_name.h"

namespace arbalest::dataflow {

using engine::Shape;

namespace {

// Names of the graph's inputs in job files, by tensor number.
std::vector<std::string> input_names(const InputDescription& input) {
  std::vector<std::string> names;
  for (const TensorDescription& tensor : input.tensors) names.push_back(tensor.name);
  return names;
}

// Returns the names in quotation marks for a message: "image" or "label".
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  }
  return text;
}

bool takes(const Layer& layer, std::size_t inputs) {
  const auto least = static_cast<std::size_t>(layer.input_count());
  return layer.takes_more_inputs() ? inputs >= least : inputs == least;
}

// Collects issues while it sorts and checks the layers of one model.
class Builder {
 public:
  Builder(const InputDescription& input, const std::vector<LayerDescription>& layers)
      : input_(input), layers_(layers), input_names_(input_names(input)) {}

  std::vector<Graph::Node> build() {
    name_layers();
    resolve_inputs();
    const bool are_resolved = issues_.empty();
    sort();
    infer_shapes();
    check_roles();
    check_readers(are_resolved);
    if (!issues_.empty() || !std::ranges::all_of(layers_, &LayerDescription::has_shape)) {
      throw GraphError(std::move(issues_));
    }
    add_accuracy();
    return std::move(nodes_);
  }

 private:
  int count() const { return static_cast<int>(layers_.size()); }
  const LayerDescription& layer(int index) const { return layers_[static_cast<std::size_t>(index)]; }

  template <typename... Args>
  void report(int index, int input, fmt::format_string<Args...> format, Args&&... args) {
    issues_.push_back({index, input, fmt::format(format, std::forward<Args>(args)...)});
  }
  // Reports that a field of a layer does not fit.
  void report_field(int index, const std::string& field, const std::string& message) {
    const LayerDescription& at = layer(index);
    issues_.push_back({index, -1, fmt::format("layer '{}' ({}): {}", at.name, at.layer->kind(), message), field});
  }

  void name_layers() {
    if (layers_.empty()) report(-1, -1, "the model has no layers");
    for (int i = 0; i < count(); ++i) {
      const std::string& name = layer(i).name;
      if (name.empty()) {
        report(i, -1, "layer {} has no name", i + 1);
      } else if (std::ranges::count(input_names_, name) > 0) {
        report(i, -1, "layer '{}': the name belongs to the model's input; choose another", name);
      } else if (!by_name_.emplace(name, i).second) {
        report(i, -1, "layer '{}': another layer has this name", name);
      }
    }
  }

  // The source that an input of the graph is, by its tensor number, and the reverse.
  static int source_of(int tensor) { return -1 - tensor; }
  static int input_of(int source) { return -1 - source; }

  // Fills sources_[i][k], the source of input k of layer i: the index of a layer, source_of() an input of the graph, or
  // kUnknownSource.
  void resolve_inputs() {
    std::vector<std::string> known = input_names_;
    for (const auto& [name, index] : by_name_) known.push_back(name);
    for (int i = 0; i < count(); ++i) {
      const LayerDescription& description = layer(i);
      std::vector<int>& sources = sources_.emplace_back();
      const int given = static_cast<int>(description.inputs.size());
      if (description.layer != nullptr && !takes(*description.layer, description.inputs.size())) {
        const int expected = description.layer->input_count();
        report(i, -1, "layer '{}': {} reads {}{} input{}, not {}", description.name, description.layer->kind(),
               expected, description.layer->takes_more_inputs() ? " or more" : "", expected == 1 ? "" : "s", given);
      }
      for (int k = 0; k < given; ++k) {
        const std::string& name = description.inputs[static_cast<std::size_t>(k)];
        if (const auto input = std::ranges::find(input_names_, name); input != input_names_.end()) {
          sources.push_back(source_of(static_cast<int>(input - input_names_.begin())));
        } else if (const auto found = by_name_.find(name); found != by_name_.end()) {
          sources.push_back(found->second);
        } else {
          sources.push_back(kUnknownSource);
          report(i, k, "layer '{}' reads '{}', which is neither a layer nor {}{}", description.name, name,
                 alternatives(input_names_), engine::did_you_mean(name, known));
        }
      }
    }
  }

  // Orders the layers so that each follows its inputs, and otherwise as given.
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
    report_cycles(std::move(placed));
  }

  // Reports each cycle once. Layers that only read from a cycle are not reported. `placed`: by layer, false for the
  // members of cycles and for layers that depend on one.
  void report_cycles(std::vector<bool> placed) {
    const auto is_placed = [&](int i) { return i < 0 || placed[static_cast<std::size_t>(i)]; };
    for (int first = 0; first < count(); ++first) {
      std::vector<int> path;
      int at = first;
      while (!is_placed(at) && std::ranges::find(path, at) == path.end()) {
        path.push_back(at);
        const std::vector<int>& sources = sources_[static_cast<std::size_t>(at)];
        const auto next = std::ranges::find_if_not(sources, is_placed);
        at = next == sources.end() ? kUnknownSource : *next;
      }
      const auto cycle = std::ranges::find(path, at);
      if (cycle != path.end()) report_cycle({cycle, path.end()});
      for (const int member : path) placed[static_cast<std::size_t>(member)] = true;
    }
  }

  // `cycle`: each layer reads from the next, and the last from the first.
  void report_cycle(std::vector<int> cycle) {
    std::ranges::rotate(cycle, std::ranges::min_element(cycle));
    constexpr std::size_t kMostNames = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(cycle.size(), kMostNames); ++i) {
      names += fmt::format("'{}' reads ", layer(cycle[i]).name);
    }
    if (cycle.size() > kMostNames)
      names += fmt::format("{} more layers, of which the last reads ", cycle.size() - kMostNames);
    report(cycle.front(), -1, "layers form a cycle: {}'{}'", names, layer(cycle.front()).name);
  }

  // Skips layers that read from a layer without a shape or from an unknown name.
  void infer_shapes() {
    std::vector<std::optional<Shape>> shapes;
    for (const Shape& shape : graph_input_shapes(input_, 1)) shapes.emplace_back(shape);
    std::vector<int> tensor_of(layers_.size());
    for (const int i : order_) {
      const auto at = static_cast<std::size_t>(i);
      Graph::Node node{layer(i).name, layer(i).layer, {}, static_cast<int>(shapes.size())};
      std::vector<Shape> inputs;
      for (const int source : sources_[at]) {
        if (source == kUnknownSource) continue;
        node.inputs.push_back(source < 0 ? input_of(source) : tensor_of[static_cast<std::size_t>(source)]);
        if (const auto& shape = shapes[static_cast<std::size_t>(node.inputs.back())]) inputs.push_back(*shape);
      }
      tensor_of[at] = node.output;
      shapes.emplace_back();
      if (node.layer != nullptr && takes(*node.layer, sources_[at].size())) {
        try {
          const std::vector<const TensorDescription*> data = data_of(sources_[at]);
          check_label_use(input_, *node.layer, data);
          if (layer(i).is_sound && inputs.size() == sources_[at].size()) {
            check_ids(input_, *node.layer, data);
            const Shape shape = node.layer->output_shape(inputs);
            check_classes(i, inputs);
            if (node.layer->role() == LayerRole::kHidden) shapes.back() = shape;
          }
        } catch (const LayerError& error) {
          report_field(i, error.field(), error.what());
        } catch (const engine::Error& error) {
          report_field(i, "", error.what());
        }
      }
      nodes_.push_back(std::move(node));
    }
  }

  // Returns for each source the tensor of the data that it is; null if it is a layer's output or unknown.
  std::vector<const TensorDescription*> data_of(const std::vector<int>& sources) const {
    std::vector<const TensorDescription*> data;
    for (const int source : sources) {
      const bool is_data = source < 0 && source != kUnknownSource;
      data.push_back(is_data ? &input_.tensors[static_cast<std::size_t>(input_of(source))] : nullptr);
    }
    return data;
  }

  // Reports a wrong number of logits at the layer that computes them, if that layer has a field for it.
  void check_classes(int index, const std::vector<Shape>& inputs) {
    const Layer& of = *layer(index).layer;
    if (of.role() == LayerRole::kHidden || of.label_type() != engine::DType::kInt32) return;
    if (inputs[0][1] == input_.classes()) return;
    const int source = sources_[static_cast<std::size_t>(index)][0];
    const std::string field = source < 0 ? "" : layer(source).layer->width_field();
    if (!field.empty()) {
      if (!has_wrong_width_.insert(source).second) return;  // loss and accuracy read the same logits
      report_field(source, field,
                   fmt::format("gives '{}' {} logits per example, but the data has {} classes; write {}: {}",
                               layer(index).name, inputs[0][1], input_.classes(), field, input_.classes()));
    } else {
      report_field(
          index, "",
          fmt::format("gets {} logits per example, but the data has {} classes", inputs[0][1], input_.classes()));
    }
  }

  // A model needs at least one loss, of which the last is the main one, and at most one metric. An unknown layer could
  // be either.
  void check_roles() {
    int main_loss = -1;
    bool has_unknown = layers_.empty();  // an issue has been reported for it
    for (int i = 0; i < count(); ++i) {
      if (layer(i).layer == nullptr) {
        has_unknown = true;
      } else if (layer(i).layer->role() == LayerRole::kLoss) {
        main_loss = i;
      } else if (layer(i).layer->role() == LayerRole::kMetric) {
        if (has_metric_) report(i, -1, "layer '{}': the model has an accuracy layer already", layer(i).name);
        has_metric_ = true;
      }
    }
    if (main_loss < 0 && !has_unknown) {
      report(-1, -1, "the model has no loss; end it with {}",
             input_.predicts_numbers() ? "squared_error {} reading the predictions and \"label\""
                                       : "softmax_cross_entropy {} reading the logits and \"label\"");
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const Layer* of = nodes_[n].layer.get();
      nodes_[n].training_only = of != nullptr && of->role() == LayerRole::kLoss && order_[n] != main_loss;
    }
  }

  // Results must not be read; every other output must be. `are_resolved`: all names and inputs are right. If one is
  // wrong, a layer without readers may be the intended input, so it is not reported.
  void check_readers(bool are_resolved) {
    std::vector<bool> is_read(layers_.size(), false);
    for (const std::vector<int>& sources : sources_) {
      for (const int source : sources) {
        if (source >= 0) is_read[static_cast<std::size_t>(source)] = true;
      }
    }
    for (int i = 0; i < count(); ++i) {
      if (layer(i).layer == nullptr) continue;
      const bool is_result = layer(i).layer->role() != LayerRole::kHidden;
      if (is_result && is_read[static_cast<std::size_t>(i)]) {
        report(i, -1, "layer '{}': its output is a result and cannot feed other layers", layer(i).name);
      }
      if (!is_result && !is_read[static_cast<std::size_t>(i)] && are_resolved) {
        report(i, -1, "layer '{}': nobody reads its output; remove it or use it", layer(i).name);
      }
    }
  }

  // Every classifier gets an accuracy layer, even if the model does not list one.
  void add_accuracy() {
    if (has_metric_) return;
    const auto loss = std::ranges::find_if(
        nodes_, [](const Graph::Node& node) { return node.layer->role() == LayerRole::kLoss && !node.training_only; });
    if (loss->layer->label_type() != engine::DType::kInt32) return;
    std::string name = "accuracy";
    while (by_name_.contains(name)) name += "_";
    const int output = static_cast<int>(input_.tensors.size() + nodes_.size());
    nodes_.push_back({name, std::make_shared<AccuracyLayer>(), loss->inputs, output});
  }

  static constexpr int kUnknownSource = std::numeric_limits<int>::min();

  const InputDescription& input_;
  const std::vector<LayerDescription>& layers_;
  const std::vector<std::string> input_names_;
  std::map<std::string, int> by_name_;
  std::vector<std::vector<int>> sources_;
  std::vector<int> order_;
  std::vector<Graph::Node> nodes_;
  bool has_metric_ = false;
  std::set<int> has_wrong_width_;  // indices of layers
  std::vector<GraphIssue> issues_;
};

}  // namespace

std::vector<Shape> graph_input_shapes(const InputDescription& input, std::int64_t batch) {
  std::vector<Shape> shapes;
  for (const TensorDescription& tensor : input.tensors) {
    Shape& shape = shapes.emplace_back(Shape{batch});
    for (const std::int64_t extent : tensor.shape) shape.append(extent);
  }
  return shapes;
}

std::vector<Graph::Node> build_nodes(const InputDescription& input, const std::vector<LayerDescription>& layers) {
  return Builder(input, layers).build();
}

}  // namespace arbalest::dataflow
