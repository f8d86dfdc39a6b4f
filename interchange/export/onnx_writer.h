// Builds the graph of an ONNX model, node by node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/ops/window.h"
#include "onnx/model.pb.h"

namespace arbalest::jobs {

class OnnxWriter {
 public:
  // Names that new_value() and new_node() do not give.
  struct Reserved {
    std::vector<std::string> values;
    std::vector<std::string> nodes;
  };
  // Nodes are added to `graph`.
  OnnxWriter(onnx::Graph& graph, const Reserved& reserved);

  // Returns a name that no value has: `wanted`, with '_' behind it as often as needed.
  std::string new_value(std::string wanted);
  std::string new_node(std::string wanted);  // the same for nodes

  // Adds a node that writes `output`.
  onnx::Node& add(std::string_view kind, const std::string& name, std::span<const std::string> inputs,
                  const std::string& output);

  // The file's operator set: the oldest that has all of its operators, but at least 13.
  std::int64_t operator_set() const noexcept { return operator_set_; }
  void need_operator_set(std::int64_t version) { operator_set_ = std::max(operator_set_, version); }

  // These add a constant and return its name. The values of `tensor` are moved into the file's message.
  std::string add_tensor(dataflow::NamedTensor tensor);
  std::string add_integers(const std::string& name, std::span<const std::int64_t> values);
  std::string add_integer(const std::string& name, std::int64_t value);
  // Equal numbers share one constant.
  std::string number(float value);

 private:
  onnx::Tensor& add_constant(const std::string& name, onnx::Tensor::DataType type);

  onnx::Graph& graph_;
  std::int64_t operator_set_ = 13;
  std::set<std::string> values_;
  std::set<std::string> nodes_;
  std::map<float, std::string> numbers_;
};

void set_attribute(onnx::Node& node, std::string_view name, std::int64_t value);
void set_attribute(onnx::Node& node, std::string_view name, float value);
void set_attribute(onnx::Node& node, std::string_view name, std::span<const std::int64_t> values);

// Sets kernel_shape, pads and strides.
void describe_window(onnx::Node& node, const engine::Window& window);

}  // namespace arbalest::jobs
