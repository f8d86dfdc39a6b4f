// Looks for the parts of formulas in an ONNX graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.pb.h"

namespace arbalest::jobs {

class FormulaGraph {
 public:
  // The nodes must be sorted. The graph must stay as it is while this is used.
  FormulaGraph(const onnx::Graph& graph, std::int64_t operator_set);

  std::int64_t operator_set() const noexcept { return operator_set_; }

  // The node that writes the value. Null for other values than those of nodes.
  const onnx::Node* writer(const std::string& value) const;
  // Null also if the node is of another kind.
  const onnx::Node* writer(const std::string& value, std::string_view kind) const;

  // Whether the value depends on nothing but tensors of the file.
  bool is_constant(const std::string& value) const { return constants_.contains(value); }

  // The value without nodes that keep each element: Identity, and Cast between types of numbers.
  std::string unchanged(std::string value) const;

  // The tensor of the file that has the elements of the value, perhaps in another shape. Null if they are computed.
  const onnx::Tensor* tensor(const std::string& value) const;
  // Its only element; none if it has another number of elements, or is computed.
  std::optional<float> number(const std::string& value) const;
  // Its elements; none if they are not integers.
  std::optional<std::vector<std::int64_t>> integers(const std::string& value) const;

  // The axes of a Squeeze, Unsqueeze or Reduce node. `as_input_since`: the operator set that made them an input.
  std::optional<std::vector<std::int64_t>> axes(const onnx::Node& node, std::int64_t as_input_since) const;

 private:
  std::int64_t operator_set_;
  std::map<std::string, const onnx::Node*> writers_;
  std::map<std::string, const onnx::Tensor*> tensors_;
  std::set<std::string> constants_;
};

// The attribute of that name; null if the node has none.
const onnx::Attribute* find_attribute(const onnx::Node& node, std::string_view name);
// The integers of an attribute; `unless_given` if the node has none.
std::vector<std::int64_t> integers_of(const onnx::Node& node, std::string_view name,
                                      std::vector<std::int64_t> unless_given);

// Makes a node with one output.
onnx::Node make_node(const char* kind, const std::vector<std::string>& inputs, const std::string& output,
                     const std::string& name);
void add_integers(onnx::Node& node, const char* name, const std::vector<std::int64_t>& values);

}  // namespace arbalest::jobs
