#include "tests/support/reference_graph.h"

#include <stdexcept>
#include <variant>

namespace arbalest::tests {

namespace {

using dataflow::Graph;
using engine::DType;
using engine::Layout;
using engine::Shape;

Layout plain(const Shape& shape, DType dtype = DType::kFloat32) {
  return {shape, dtype, static_cast<std::size_t>(shape.elements()) * engine::size_of(dtype), nullptr};
}

void add_to(Values& sum, const Values& part) {
  if (sum.empty()) sum.resize(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
}

class Runner {
 public:
  Runner(const Graph& graph, const std::map<std::string, Values>& parameters, const Values& images,
         const Labels& labels)
      : graph_(graph), parameters_(parameters), labels_(labels) {
    shapes_ = graph.shapes(static_cast<std::int64_t>(labels.size()));
    values_.resize(shapes_.size());
    gradients_.resize(shapes_.size());
    values_.front() = images;
  }

  GraphRun run() {
    for (const Graph::Node& node : graph_.nodes()) {
      visit(node, [&](const auto& spec) { values_[at(node.output)] = forward(node, spec); });
    }
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
      const Graph::Node& node = graph_.nodes()[n];
      const bool is_loss = node.layer->role() == dataflow::LayerRole::kLoss;
      if (!is_loss && gradients_[at(node.output)].empty()) continue;
      visit(node, [&](const auto& spec) { backward(node, spec); });
    }
    return result_;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  std::int64_t batch() const { return static_cast<std::int64_t>(labels_.size()); }

  template <typename Visitor>
  void visit(const Graph::Node& node, const Visitor& visitor) {
    std::vector<Layout> inputs;
    for (const int input : node.inputs) {
      inputs.push_back(plain(shapes_[at(input)], input == graph_.label() ? DType::kInt32 : DType::kFloat32));
    }
    std::visit(visitor, node.layer->operator_spec(inputs, node.key));
  }

  const Values& input(const Graph::Node& node, std::size_t k = 0) const { return values_[at(node.inputs[k])]; }
  const Shape& shape(const Graph::Node& node, std::size_t k = 0) const { return shapes_[at(node.inputs[k])]; }
  const Values& arriving(const Graph::Node& node) const { return gradients_[at(node.output)]; }
  void give(const Graph::Node& node, std::size_t k, const Values& gradient) {
    add_to(gradients_[at(node.inputs[k])], gradient);
  }
  Values parameter(const Graph::Node& node, const char* name) const {
    const auto found = parameters_.find(node.name + "." + name);
    return found == parameters_.end() ? Values{} : found->second;
  }
  std::vector<Shape> input_shapes(const Graph::Node& node) const { return Graph::input_shapes(node, shapes_); }

  template <typename Spec>
  Values forward(const Graph::Node& node, const Spec&) const {
    throw std::logic_error("no reference for " + node.name);
  }
  template <typename Spec>
  void backward(const Graph::Node& node, const Spec&) {
    throw std::logic_error("no reference for the gradient of " + node.name);
  }

  Values forward(const Graph::Node& node, const engine::Conv2dSpec& spec) const {
    return conv2d(shape(node), input(node), parameter(node, "weight"), parameter(node, "bias"), spec.filters,
                  spec.window);
  }
  void backward(const Graph::Node& node, const engine::Conv2dSpec& spec) {
    const LinearGradients of = conv2d_gradients(shape(node), input(node), parameter(node, "weight"), spec.filters,
                                                spec.window, arriving(node));
    finish_linear(node, of);
  }
  Values forward(const Graph::Node& node, const engine::DenseSpec& spec) const {
    return dense(batch(), input(node), parameter(node, "weight"), parameter(node, "bias"), spec.units);
  }
  void backward(const Graph::Node& node, const engine::DenseSpec& spec) {
    finish_linear(node, dense_gradients(batch(), input(node), parameter(node, "weight"), spec.units, arriving(node)));
  }
  void finish_linear(const Graph::Node& node, const LinearGradients& of) {
    give(node, 0, of.input);
    result_.gradients[node.name + ".weight"] = of.weights;
    if (!parameter(node, "bias").empty()) result_.gradients[node.name + ".bias"] = of.bias;
  }

  Values forward(const Graph::Node& node, const engine::Pool2dSpec& spec) const {
    return pool2d(shape(node), input(node), spec.kind, spec.window);
  }
  void backward(const Graph::Node& node, const engine::Pool2dSpec& spec) {
    give(node, 0, pool2d_gradient(shape(node), input(node), spec.kind, spec.window, arriving(node)));
  }
  Values forward(const Graph::Node& node, const engine::ActivationSpec& spec) const {
    return activation(input(node), spec.function);
  }
  void backward(const Graph::Node& node, const engine::ActivationSpec& spec) {
    const Values& read = engine::differentiates_input(spec.function.kind) ? input(node) : values_[at(node.output)];
    give(node, 0, activation_gradient(read, spec.function, arriving(node)));
  }
  Values forward(const Graph::Node& node, const engine::FlattenSpec&) const { return input(node); }
  void backward(const Graph::Node& node, const engine::FlattenSpec&) { give(node, 0, Values(arriving(node))); }

  Values forward(const Graph::Node& node, const engine::AddSpec&) const {
    Values sum = input(node, 0);
    add_to(sum, input(node, 1));
    return sum;
  }
  void backward(const Graph::Node& node, const engine::AddSpec&) {
    for (const std::size_t k : {0U, 1U}) give(node, k, Values(arriving(node)));
  }
  Values forward(const Graph::Node& node, const engine::ConcatSpec&) const {
    std::vector<Values> inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) inputs.push_back(input(node, k));
    return concat(input_shapes(node), inputs);
  }
  void backward(const Graph::Node& node, const engine::ConcatSpec&) {
    const std::vector<Values> parts = split(input_shapes(node), arriving(node));
    for (std::size_t k = 0; k < parts.size(); ++k) give(node, k, parts[k]);
  }
  Values forward(const Graph::Node& node, const engine::PaddedShortcutSpec& spec) const {
    return padded_shortcut(shape(node), input(node), spec.channels, spec.stride);
  }
  void backward(const Graph::Node& node, const engine::PaddedShortcutSpec& spec) {
    give(node, 0, padded_shortcut_gradient(shape(node), spec.channels, spec.stride, arriving(node)));
  }

  Values forward(const Graph::Node& node, const engine::SoftmaxCrossEntropySpec& spec) {
    double labeled = 0.0;
    for (const std::int32_t label : labels_) labeled += label < 0 ? 0.0 : 1.0;
    const auto mean = [&](double smoothing) {
      return softmax_cross_entropy(shape(node)[1], input(node), labels_, smoothing) / labeled;
    };
    result_.loss += static_cast<double>(spec.weight) * mean(static_cast<double>(spec.label_smoothing));
    if (!node.training_only) result_.main_loss = mean(0.0);
    return {};
  }
  void backward(const Graph::Node& node, const engine::SoftmaxCrossEntropySpec& spec) {
    const auto smoothing = static_cast<double>(spec.label_smoothing);
    Values gradient = softmax_cross_entropy_gradient(shape(node)[1], input(node), labels_, smoothing);
    for (double& value : gradient) value *= static_cast<double>(spec.weight);
    give(node, 0, gradient);
  }
  Values forward(const Graph::Node& node, const engine::AccuracySpec&) {
    result_.correct = count_correct(shape(node)[1], input(node), labels_);
    return {};
  }

  const Graph& graph_;
  const std::map<std::string, Values>& parameters_;
  const Labels& labels_;
  std::vector<Shape> shapes_;  // by tensor, like everything below
  std::vector<Values> values_;
  std::vector<Values> gradients_;  // empty: not computed yet
  GraphRun result_;
};

}  // namespace

GraphRun run_reference(const Graph& graph, const std::map<std::string, Values>& parameters, const Values& images,
                       const Labels& labels) {
  return Runner(graph, parameters, images, labels).run();
}

}  // namespace arbalest::tests
