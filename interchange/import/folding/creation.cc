#include <algorithm>
#include <cmath>

#include "interchange/import/folding/extents.h"
#include "interchange/import/folding/folding.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

Constant tensor_of(const onnx::Tensor& value) {
  if (!has_numbers(value)) refuse("{}", type_problem(value));
  return constant_of(value);
}

float truncated(float number) {
  constexpr float kMost = 1 << 30;
  if (!std::isfinite(number) || std::abs(number) > kMost) refuse("it converts {} to an integer", number);
  return std::trunc(number);
}

Constant to_numbers(const Constant& input) {
  if (!input.is_integer) return input;
  if (std::ranges::count(input.integers, kFreeBatch) > 0) refuse("it computes with the number of examples");
  Constant result{.dims = input.dims};
  for (const std::int64_t value : input.integers) result.numbers.push_back(static_cast<float>(value));
  return result;
}

Constant to_integers(const GraphImport& graph, const Constant& input) {
  if (input.is_integer) return input;
  check_room(graph, input.size(), true);
  Constant result{.dims = input.dims, .is_integer = true};
  for (const float number : input.numbers) result.integers.push_back(static_cast<std::int64_t>(truncated(number)));
  return result;
}

Constant to_truth(const GraphImport& graph, const Constant& input) {
  check_room(graph, input.size(), true);
  Constant result{.dims = input.dims, .is_integer = true};
  for (const float number : input.numbers) result.integers.push_back(number != 0.0F ? 1 : 0);
  for (const std::int64_t value : input.integers) result.integers.push_back(value != 0 ? 1 : 0);
  return result;
}

Constant float_range(const GraphImport& graph, float start, float limit, float delta) {
  const double count = std::ceil((static_cast<double>(limit) - start) / delta);
  constexpr double kMost = 1 << 24;
  if (!std::isfinite(count) || count > kMost) refuse("it makes a range of {} numbers", count);
  Constant result{.dims = {std::max<std::int64_t>(static_cast<std::int64_t>(count), 0)}};
  check_room(graph, checked_elements(result.dims), false);
  for (std::int64_t k = 0; k < result.dims[0]; ++k) result.numbers.push_back(start + static_cast<float>(k) * delta);
  return result;
}

Constant integer_range(const GraphImport& graph, std::int64_t start, std::int64_t limit, std::int64_t delta) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (const std::int64_t value : {start, limit, delta}) {
    if (value > kMost || value < -kMost) refuse("it makes a range from {} to {}", start, limit);
  }
  const std::int64_t span = delta > 0 ? limit - start : start - limit;
  const std::int64_t step = std::abs(delta);
  Constant result{.dims = {span > 0 ? (span + step - 1) / step : 0}, .is_integer = true};
  check_room(graph, checked_elements(result.dims), true);
  for (std::int64_t k = 0; k < result.dims[0]; ++k) result.integers.push_back(start + k * delta);
  return result;
}

}  // namespace

Constant fold_constant(GraphImport& /*graph*/, NodeReader& node) {
  if (const onnx::Attribute* value = node.attribute("value"); value != nullptr && value->has_t()) {
    Constant constant = tensor_of(value->t());
    constant.name = node.node().output(0);
    return constant;
  }
  if (node.has("value_float")) return {.numbers = {node.number("value_float", 0.0F)}};
  if (node.has("value_int")) return {.is_integer = true, .integers = {node.integer("value_int", 0)}};
  if (node.has("value_ints")) {
    Constant constant{.is_integer = true, .integers = node.integers("value_ints", {})};
    constant.dims = {static_cast<std::int64_t>(constant.integers.size())};
    return constant;
  }
  if (const onnx::Attribute* value = node.attribute("value_floats"); value != nullptr) {
    return {.dims = {value->floats_size()}, .numbers = {value->floats().begin(), value->floats().end()}};
  }
  refuse("its value is no tensor of numbers");
}

Constant fold_constant_of_shape(GraphImport& graph, NodeReader& node) {
  const Constant& shape = graph.constant(node, 0, "its shape");
  if (!shape.is_integer) refuse("its shape is no list of integers");
  const std::size_t elements = checked_elements(shape.integers);
  const onnx::Attribute* given = node.attribute("value");
  const Constant value = given == nullptr ? Constant{.numbers = {0.0F}} : tensor_of(given->t());
  if (!value.is_single()) refuse("its value is not one number");
  check_room(graph, elements, value.is_integer);
  Constant result{.dims = shape.integers, .is_integer = value.is_integer, .name = node.node().output(0)};
  if (value.is_integer) {
    result.integers.assign(elements, value.integers[0]);
  } else {
    result.numbers.assign(elements, value.numbers[0]);
  }
  return result;
}

Constant fold_range(GraphImport& graph, NodeReader& node) {
  const Constant& start = graph.constant(node, 0, "its start");
  const Constant& limit = graph.constant(node, 1, "its limit");
  const Constant& delta = graph.constant(node, 2, "its step");
  const bool is_integer = start.is_integer;
  if (limit.is_integer != is_integer || delta.is_integer != is_integer) refuse("its inputs are of several types");
  if (!start.is_single() || !limit.is_single() || !delta.is_single()) refuse("its inputs are not one number each");
  if (delta.single() == 0.0) refuse("its step is 0");
  if (is_integer) return integer_range(graph, start.integers[0], limit.integers[0], delta.integers[0]);
  return float_range(graph, start.numbers[0], limit.numbers[0], delta.numbers[0]);
}

Constant shape_constant(NodeReader& node, const std::vector<std::int64_t>& dims) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto place = [rank](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
  };
  const std::int64_t start = place(node.integer("start", 0));
  const std::int64_t end = std::max(place(node.integer("end", rank)), start);
  return {.dims = {end - start}, .is_integer = true, .integers = {dims.begin() + start, dims.begin() + end}};
}

Constant fold_shape(GraphImport& graph, NodeReader& node) {
  return shape_constant(node, graph.constant(node, 0, "its input").dims);
}

Constant fold_cast(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  node.ignore("saturate");  // of types with 8 bits
  node.ignore("round_mode");
  switch (const std::int64_t to = node.integer("to", 0)) {
    case onnx::Tensor::FLOAT:
    case onnx::Tensor::DOUBLE: return to_numbers(input);
    case onnx::Tensor::INT64:
    case onnx::Tensor::INT32: return to_integers(graph, input);
    case onnx::Tensor::BOOL: return to_truth(graph, input);
    case onnx::Tensor::FLOAT16:
    case onnx::Tensor::BFLOAT16: {
      Constant result = to_numbers(input);
      for (float& number : result.numbers) number = rounded_to(to, number);
      return result;
    }
    default: refuse("it converts to type {}", to);
  }
}

Constant fold_cast_like(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  node.ignore("saturate");
  node.ignore("round_mode");
  const Value* like = graph.input(node, 1);
  if (like == nullptr) refuse("its second input is missing");
  const auto* constant = std::get_if<std::shared_ptr<const Constant>>(like);
  const bool to_integer = constant == nullptr ? std::holds_alternative<IdColumn>(*like) : (*constant)->is_integer;
  return to_integer ? to_integers(graph, input) : to_numbers(input);
}

// Exporters merge equal constants, and give each its own name by an Identity.
Constant fold_identity(GraphImport& graph, NodeReader& node) {
  Constant constant = graph.constant(node, 0, "its input");
  constant.name = node.node().output(0);
  return constant;
}

}  // namespace arbalest::jobs
