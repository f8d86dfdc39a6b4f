#include "interchange/import/formulas/formula_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "interchange/import/graph/constant.h"

namespace arbalest::jobs {

namespace {

constexpr int kMostSteps = 16;  // through nodes that keep elements; so that a long chain costs little

// Nodes whose first input has all elements of the output, in the same order.
bool keeps_elements(const std::string& kind) {
  static const std::set<std::string, std::less<>> kKinds = {"Cast",    "CastLike", "Flatten",  "Identity",
                                                            "Reshape", "Squeeze",  "Unsqueeze"};
  return kKinds.contains(kind);
}

// Nodes that compute a constant of constants.
bool is_arithmetic(const std::string& kind) {
  static const std::set<std::string, std::less<>> kKinds = {"Add", "Div",        "Expand", "Mul",  "Neg",
                                                            "Pow", "Reciprocal", "Shape",  "Sqrt", "Sub"};
  return kKinds.contains(kind);
}

}  // namespace

FormulaGraph::FormulaGraph(const onnx::Graph& graph, std::int64_t operator_set) : operator_set_(operator_set) {
  for (const onnx::Tensor& tensor : graph.initializer()) {
    if (!has_numbers(tensor)) continue;
    tensors_.emplace(tensor.name(), &tensor);
    constants_.insert(tensor.name());
  }
  for (const onnx::Node& node : graph.node()) {
    const bool is_standard = node.domain().empty() || node.domain() == "ai.onnx";
    if (node.output_size() == 0 || !is_standard) continue;
    const std::string& output = node.output(0);
    writers_.emplace(output, &node);
    const onnx::Attribute* value = node.op_type() == "Constant" ? find_attribute(node, "value") : nullptr;
    if (value != nullptr && value->has_t() && has_numbers(value->t())) tensors_.emplace(output, &value->t());
    const auto constant = [&](const std::string& input) { return input.empty() || is_constant(input); };
    const bool has_elements = keeps_elements(node.op_type()) && node.input_size() > 0 && is_constant(node.input(0));
    const bool is_computed =
        is_arithmetic(node.op_type()) && node.input_size() > 0 && std::ranges::all_of(node.input(), constant);
    if (tensors_.contains(output) || has_elements || is_computed) constants_.insert(output);
  }
}

const onnx::Node* FormulaGraph::writer(const std::string& value) const {
  const auto found = writers_.find(value);
  return found == writers_.end() ? nullptr : found->second;
}

const onnx::Node* FormulaGraph::writer(const std::string& value, std::string_view kind) const {
  const onnx::Node* node = writer(value);
  return node != nullptr && node->op_type() == kind ? node : nullptr;
}

std::string FormulaGraph::unchanged(std::string value) const {
  for (int step = 0; step < kMostSteps; ++step) {
    const onnx::Node* node = writer(value);
    if (node == nullptr || (node->op_type() != "Identity" && node->op_type() != "Cast")) break;
    if (node->input_size() == 0) break;
    value = node->input(0);
  }
  return value;
}

const onnx::Tensor* FormulaGraph::tensor(const std::string& value) const {
  std::string name = value;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return found->second;
    const onnx::Node* node = writer(name);
    if (node == nullptr || !keeps_elements(node->op_type()) || node->input_size() == 0) return nullptr;
    name = node->input(0);
  }
  return nullptr;
}

std::optional<float> FormulaGraph::number(const std::string& value) const {
  const onnx::Tensor* found = tensor(value);
  if (found == nullptr || raw_bytes(*found) > sizeof(double)) return std::nullopt;
  const Constant constant = constant_of(*found);
  if (!constant.is_single()) return std::nullopt;
  return static_cast<float>(constant.single());
}

std::optional<std::vector<std::int64_t>> FormulaGraph::integers(const std::string& value) const {
  constexpr std::uint64_t kMostBytes = 1 << 10;  // of axes and shapes
  const onnx::Tensor* found = tensor(value);
  if (found == nullptr || raw_bytes(*found) > kMostBytes) return std::nullopt;
  Constant constant = constant_of(*found);
  if (!constant.is_integer) return std::nullopt;
  return std::move(constant.integers);
}

std::optional<std::vector<std::int64_t>> FormulaGraph::axes(const onnx::Node& node, std::int64_t as_input_since) const {
  if (operator_set_ < as_input_since) return integers_of(node, "axes", {});
  if (node.input_size() < 2) return std::vector<std::int64_t>();
  return integers(node.input(1));
}

const onnx::Attribute* find_attribute(const onnx::Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.attribute(), name, &onnx::Attribute::name);
  return found == node.attribute().end() ? nullptr : &*found;
}

std::vector<std::int64_t> integers_of(const onnx::Node& node, std::string_view name,
                                      std::vector<std::int64_t> unless_given) {
  const onnx::Attribute* found = find_attribute(node, name);
  if (found == nullptr) return unless_given;
  return {found->ints().begin(), found->ints().end()};
}

onnx::Node make_node(const char* kind, const std::vector<std::string>& inputs, const std::string& output,
                     const std::string& name) {
  onnx::Node node;
  node.set_op_type(kind);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void add_integers(onnx::Node& node, const char* name, const std::vector<std::int64_t>& values) {
  onnx::Attribute& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::Attribute::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

}  // namespace arbalest::jobs
