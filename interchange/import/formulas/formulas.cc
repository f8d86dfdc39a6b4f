#include "interchange/import/formulas/formulas.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interchange/import/formulas/formula_graph.h"
#include "interchange/import/formulas/spelled_norm.h"
#include "interchange/import/formulas/spelled_windows.h"

namespace arbalest::jobs {

namespace {

// A text that begins no name of a value: "formula" and more underscores than follow it in any name. None if a name has
// very many.
std::optional<std::string> unused_prefix(const onnx::Graph& graph) {
  const std::string word = "formula";
  constexpr std::size_t kMost = 64;
  std::size_t underscores = 0;
  const auto look_at = [&](const std::string& name) {
    if (!name.starts_with(word)) return;
    const std::size_t end = std::min(name.find_first_not_of('_', word.size()), name.size());
    underscores = std::max(underscores, end - word.size() + 1);
  };
  for (const onnx::Node& node : graph.node()) std::ranges::for_each(node.output(), look_at);
  for (const onnx::Tensor& tensor : graph.initializer()) look_at(tensor.name());
  for (const onnx::Value& input : graph.input()) look_at(input.name());
  if (underscores > kMost) return std::nullopt;
  return word + std::string(underscores, '_');
}

// The operand of a Max or Min of a value and `bound`.
std::optional<std::string> operand(const FormulaGraph& graph, const onnx::Node& node, float bound) {
  if (node.input_size() != 2) return std::nullopt;
  for (const int k : {0, 1}) {
    if (graph.number(node.input(1 - k)) == bound && !graph.is_constant(node.input(k))) return node.input(k);
  }
  return std::nullopt;
}

// max(x, 0), and min(max(x, 0), 6).
Replacement find_relu(const FormulaGraph& graph, const onnx::Node& last) {
  constexpr float kMost = 6.0F;             // of ReLU6
  constexpr std::int64_t kWithInputs = 11;  // operator set from which bounds are inputs
  if (last.op_type() == "Max") {
    const std::optional<std::string> x = operand(graph, last, 0.0F);
    if (!x) return {};
    return {.nodes = {make_node("Relu", {*x}, last.output(0), "relu")}, .tensors = {}};
  }
  const std::optional<std::string> bounded = operand(graph, last, kMost);
  const onnx::Node* max = bounded ? graph.writer(*bounded, "Max") : nullptr;
  const std::optional<std::string> x = max == nullptr ? std::nullopt : operand(graph, *max, 0.0F);
  if (!x || graph.operator_set() < kWithInputs) return {};
  const int zero = max->input(0) == *x ? 1 : 0;
  const int six = last.input(0) == *bounded ? 1 : 0;
  return {.nodes = {make_node("Clip", {*x, max->input(zero), last.input(six)}, last.output(0), "relu6")},
          .tensors = {}};
}

Replacement find_formula(const FormulaGraph& graph, const onnx::Node& last, const std::string& prefix) {
  if (!last.domain().empty() && last.domain() != "ai.onnx") return {};
  if (last.output_size() != 1 || graph.is_constant(last.output(0))) return {};
  const std::string& kind = last.op_type();
  if (kind == "Max" || kind == "Min") return find_relu(graph, last);
  if (kind == "Squeeze" || kind == "Div" || kind == "ReduceMax") return find_spelled_window(graph, last, prefix);
  if (std::optional<onnx::Node> norm = find_spelled_norm(graph, last))
    return {.nodes = {std::move(*norm)}, .tensors = {}};
  return {};
}

// Removes nodes that nothing reads, such as the other nodes of formulas.
void remove_unread(onnx::Graph& graph) {
  std::set<std::string> read;
  for (const onnx::Value& output : graph.output()) read.insert(output.name());
  std::vector<int> kept;
  for (int n = graph.node_size(); n-- > 0;) {
    const onnx::Node& node = graph.node(n);
    if (std::ranges::none_of(node.output(), [&](const std::string& name) { return read.contains(name); })) continue;
    read.insert(node.input().begin(), node.input().end());
    kept.push_back(n);
  }
  google::protobuf::RepeatedPtrField<onnx::Node> nodes;
  for (auto n = kept.rbegin(); n != kept.rend(); ++n) nodes.Add()->Swap(graph.mutable_node(*n));
  graph.mutable_node()->Swap(&nodes);
}

}  // namespace

void join_formulas(onnx::Graph& graph, std::int64_t operator_set) {
  const FormulaGraph formulas(graph, operator_set);
  const std::optional<std::string> prefix = unused_prefix(graph);
  if (!prefix) return;
  std::vector<Replacement> replacements;
  bool is_any = false;
  for (const onnx::Node& node : graph.node()) {
    replacements.push_back(find_formula(formulas, node, *prefix));
    is_any = is_any || !replacements.back().nodes.empty();
  }
  if (!is_any) return;
  google::protobuf::RepeatedPtrField<onnx::Node> nodes;
  for (int n = 0; n < graph.node_size(); ++n) {
    Replacement& replacement = replacements[static_cast<std::size_t>(n)];
    if (replacement.nodes.empty()) nodes.Add()->Swap(graph.mutable_node(n));
    for (onnx::Node& node : replacement.nodes) nodes.Add()->Swap(&node);
    for (onnx::Tensor& tensor : replacement.tensors) graph.add_initializer()->Swap(&tensor);
  }
  graph.mutable_node()->Swap(&nodes);
  remove_unread(graph);
}

void import_spelled_norm(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.tensor(node, 0);
  if (input.source == kImageSource && input.shape.rank() != 4) refuse("it normalizes ids");
  ImportedLayer layer{.name = graph.name_for(node)};
  v1::BatchNorm& norm = *layer.message.mutable_batch_norm();
  const float epsilon = node.number("epsilon", 1e-5F);
  if (epsilon != 1e-5F) norm.set_epsilon(epsilon);
  const auto add = [&](const char* name, int k, const Constant& unless_given) {
    const Constant* given = graph.optional_numbers(node, k, name);
    std::optional<std::vector<float>> values = per_channel(given == nullptr ? unless_given : *given, input);
    if (!values) refuse("it must have one {} for each channel", name);
    layer.weights.push_back(weight_of(name, {input.shape[1]}, std::move(*values)));
  };
  add("weight", 1, {.numbers = {1.0F}});
  add("bias", 2, {.numbers = {0.0F}});
  add("running_mean", 3, {.numbers = {0.0F}});
  add("running_var", 4, {.numbers = {1.0F}});
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.channels_first = input.channels_first;
  graph.put(node, output);
}

}  // namespace arbalest::jobs
