#include "interchange/export/onnx_writer.h"

#include <array>
#include <bit>

#include <fmt/format.h>

namespace arbalest::jobs {

static_assert(std::endian::native == std::endian::little, "ONNX holds little-endian numbers");

namespace {

onnx::Attribute& add_attribute(onnx::Node& node, std::string_view name, onnx::Attribute::Type type) {
  onnx::Attribute& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}

template <typename T>
void set_raw(onnx::Tensor& tensor, std::span<const T> values) {
  tensor.set_raw_data(values.data(), values.size_bytes());
}

}  // namespace

OnnxWriter::OnnxWriter(onnx::Graph& graph, const Reserved& reserved)
    : graph_(graph),
      values_(reserved.values.begin(), reserved.values.end()),
      nodes_(reserved.nodes.begin(), reserved.nodes.end()) {}

std::string OnnxWriter::new_value(std::string wanted) {
  while (!values_.insert(wanted).second) wanted += '_';
  return wanted;
}

std::string OnnxWriter::new_node(std::string wanted) {
  while (!nodes_.insert(wanted).second) wanted += '_';
  return wanted;
}

onnx::Node& OnnxWriter::add(std::string_view kind, const std::string& name, std::span<const std::string> inputs,
                            const std::string& output) {
  onnx::Node& node = *graph_.add_node();
  node.mutable_input()->Assign(inputs.begin(), inputs.end());
  node.add_output(output);
  node.set_name(name);
  node.set_op_type(std::string(kind));
  return node;
}

onnx::Tensor& OnnxWriter::add_constant(const std::string& name, onnx::Tensor::DataType type) {
  onnx::Tensor& tensor = *graph_.add_initializer();
  tensor.set_name(new_value(name));
  tensor.set_data_type(type);
  return tensor;
}

std::string OnnxWriter::add_tensor(dataflow::NamedTensor tensor) {
  onnx::Tensor& constant = add_constant(tensor.name, onnx::Tensor::FLOAT);
  constant.mutable_dims()->Assign(tensor.shape.begin(), tensor.shape.end());
  set_raw(constant, std::span<const float>(tensor.values));
  return constant.name();
}

std::string OnnxWriter::add_integers(const std::string& name, std::span<const std::int64_t> values) {
  onnx::Tensor& constant = add_constant(name, onnx::Tensor::INT64);
  constant.add_dims(static_cast<std::int64_t>(values.size()));
  set_raw(constant, values);
  return constant.name();
}

std::string OnnxWriter::add_integer(const std::string& name, std::int64_t value) {
  onnx::Tensor& constant = add_constant(name, onnx::Tensor::INT64);
  set_raw(constant, std::span<const std::int64_t>(&value, 1));
  return constant.name();
}

std::string OnnxWriter::number(float value) {
  const auto found = numbers_.find(value);
  if (found != numbers_.end()) return found->second;
  onnx::Tensor& constant = add_constant(fmt::format("number/{}", value), onnx::Tensor::FLOAT);
  set_raw(constant, std::span<const float>(&value, 1));
  return numbers_[value] = constant.name();
}

void set_attribute(onnx::Node& node, std::string_view name, std::int64_t value) {
  add_attribute(node, name, onnx::Attribute::INT).set_i(value);
}

void set_attribute(onnx::Node& node, std::string_view name, float value) {
  add_attribute(node, name, onnx::Attribute::FLOAT).set_f(value);
}

void set_attribute(onnx::Node& node, std::string_view name, std::span<const std::int64_t> values) {
  add_attribute(node, name, onnx::Attribute::INTS).mutable_ints()->Assign(values.begin(), values.end());
}

void describe_window(onnx::Node& node, const engine::Window& window) {
  const engine::Extent2d after = engine::padding_after(window);
  set_attribute(node, "kernel_shape", std::array{window.kernel.height, window.kernel.width});
  set_attribute(node, "pads", std::array{window.padding.height, window.padding.width, after.height, after.width});
  set_attribute(node, "strides", std::array{window.stride.height, window.stride.width});
}

}  // namespace arbalest::jobs
