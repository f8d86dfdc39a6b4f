// Computes what depends on constants only: the shapes of Reshape nodes, and weights that a file computes.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

#include "jobs/interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

constexpr std::int64_t kMostMade = kMostElements;  // elements of a ConstantOfShape

using Shared = std::shared_ptr<const Constant>;

Shared share(Constant constant) { return std::make_shared<const Constant>(std::move(constant)); }

std::int64_t checked_elements(const std::vector<std::int64_t>& dims) {
  if (std::ranges::count(dims, kFreeBatch) > 0) refuse("its shape depends on the number of examples");
  std::int64_t elements = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0 || extent > kMostMade || elements * extent > kMostMade) {
      refuse("it makes a constant of more than {} elements", kMostMade);
    }
    elements *= extent;
  }
  return elements;
}

Constant with_dims(const Constant& constant, std::vector<std::int64_t> dims) {
  Constant result = constant;
  result.dims = std::move(dims);
  return result;
}

std::int64_t axis_within(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) refuse("it has no axis {}", axis);
  return axis < 0 ? axis + size : axis;
}

Constant constant_node(GraphImport& /*graph*/, NodeReader& node) {
  if (const onnx::Attribute* value = node.attribute("value"); value != nullptr && value->has_t()) {
    Constant constant = constant_of(value->t());
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
  refuse("its value is no tensor of numbers");
}

Constant constant_of_shape(GraphImport& graph, NodeReader& node) {
  const Constant& shape = graph.constant(node, 0, "its shape");
  const auto elements = static_cast<std::size_t>(checked_elements(shape.integers));
  graph.count_made(elements);  // before they take memory
  const onnx::Attribute* given = node.attribute("value");
  const Constant value = given == nullptr ? Constant{.numbers = {0.0F}} : constant_of(given->t());
  if (!value.is_single()) refuse("its value is not one number");
  Constant result{.dims = shape.integers, .is_integer = value.is_integer, .name = node.node().output(0)};
  if (value.is_integer) {
    result.integers.assign(elements, value.integers[0]);
  } else {
    result.numbers.assign(elements, value.numbers[0]);
  }
  return result;
}

std::vector<std::int64_t> given_axes(GraphImport& graph, NodeReader& node) {
  if (graph.operator_set < 13) return node.integers("axes", {});
  const Constant* axes = graph.optional_constant(node, 1, "its axes");
  return axes == nullptr ? std::vector<std::int64_t>{} : axes->integers;
}

Constant unsqueeze(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  std::vector<std::int64_t> axes = given_axes(graph, node);
  const std::size_t rank = input.dims.size() + axes.size();
  for (std::int64_t& axis : axes) axis = axis_within(axis, rank);
  std::ranges::sort(axes);
  std::vector<std::int64_t> dims = input.dims;
  for (const std::int64_t axis : axes) {
    if (std::cmp_greater(axis, dims.size())) refuse("its axes repeat");
    dims.insert(dims.begin() + axis, 1);
  }
  return with_dims(input, std::move(dims));
}

Constant squeeze(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  std::vector<std::int64_t> axes = given_axes(graph, node);
  for (std::int64_t& axis : axes) axis = axis_within(axis, input.dims.size());
  std::vector<std::int64_t> dims;
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
    const bool is_named = std::ranges::count(axes, static_cast<std::int64_t>(axis)) > 0;
    if (is_named && input.dims[axis] != 1) refuse("it removes a dimension of extent {}", input.dims[axis]);
    if (!is_named && (!axes.empty() || input.dims[axis] != 1)) dims.push_back(input.dims[axis]);
  }
  return with_dims(input, std::move(dims));
}

Constant reshape(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  std::vector<std::int64_t> dims =
      graph.operator_set < 5 ? node.integers("shape", {}) : graph.constant(node, 1, "its shape").integers;
  const bool has_zeros = node.integer("allowzero", 0) != 0;
  if (has_zeros && std::ranges::count(dims, 0) > 0) refuse("it makes a tensor without elements");
  std::int64_t known = 1;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0 && axis < input.dims.size()) dims[axis] = input.dims[axis];
    if (dims[axis] < -1 || dims[axis] > kMostElements) refuse("it makes a shape with the extent {}", dims[axis]);
    if (dims[axis] != -1) known = std::min(known * dims[axis], kMostElements);
  }
  const auto size = static_cast<std::int64_t>(input.size());
  for (std::int64_t& extent : dims) {
    if (extent == -1) extent = known > 0 ? size / known : 0;
  }
  if (checked_elements(dims) != size) refuse("it makes {} elements of {}", checked_elements(dims), size);
  return with_dims(input, std::move(dims));
}

Constant transpose(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const std::size_t rank = input.dims.size();
  std::vector<std::int64_t> backward(rank);
  std::iota(backward.rbegin(), backward.rend(), 0);
  const std::vector<std::int64_t> order = node.integers("perm", backward);
  if (!std::ranges::is_permutation(order, backward)) refuse("its attribute 'perm' is no order of the axes");
  if (input.is_integer) refuse("it transposes integers");
  std::vector<std::size_t> strides(rank, 1);  // of the input
  for (std::size_t axis = rank; axis-- > 1;) {
    strides[axis - 1] = strides[axis] * static_cast<std::size_t>(input.dims[axis]);
  }
  Constant result{.numbers = std::vector<float>(input.numbers.size()), .name = input.name};
  for (const std::int64_t axis : order) result.dims.push_back(input.dims[static_cast<std::size_t>(axis)]);
  for (std::size_t element = 0; element < result.numbers.size(); ++element) {
    std::size_t rest = element;
    std::size_t from = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(result.dims[axis]);
      from += rest % extent * strides[static_cast<std::size_t>(order[axis])];
      rest /= extent;
    }
    result.numbers[element] = input.numbers[from];
  }
  return result;
}

Constant cast(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const std::int64_t to = node.integer("to", 0);
  const bool to_floating = to == onnx::Tensor::FLOAT || to == onnx::Tensor::DOUBLE || to == onnx::Tensor::FLOAT16;
  const bool to_integer = to == onnx::Tensor::INT64 || to == onnx::Tensor::INT32;
  if (to_floating != !input.is_integer && std::ranges::count(input.integers, kFreeBatch) == 0) {
    Constant result{.dims = input.dims, .is_integer = !to_floating};
    if (to_floating) {
      std::ranges::transform(input.integers, std::back_inserter(result.numbers),
                             [](std::int64_t value) { return static_cast<float>(value); });
      return result;
    }
    refuse("it converts numbers to type {}", to);
  }
  if (!to_floating && !to_integer) refuse("it converts to type {}", to);
  return input;
}

// Lists of integers only: shapes.
const Constant& integers(GraphImport& graph, const NodeReader& node, int k) {
  const Constant& input = graph.constant(node, k, "its input");
  if (!input.is_integer || input.dims.size() > 1) refuse("it takes parts of a tensor that is no shape");
  return input;
}

Constant gather(GraphImport& graph, NodeReader& node) {
  const Constant& input = integers(graph, node, 0);
  const Constant& index = integers(graph, node, 1);
  node.require("axis", 0);
  Constant result{.dims = index.dims, .is_integer = true};
  for (const std::int64_t place : index.integers) {
    result.integers.push_back(input.integers[static_cast<std::size_t>(axis_within(place, input.integers.size()))]);
  }
  return result;
}

Constant concat(GraphImport& graph, NodeReader& node) {
  node.require("axis", 0);
  Constant result{.is_integer = true};
  for (int k = 0; k < node.node().input_size(); ++k) {
    const Constant& input = integers(graph, node, k);
    result.integers.insert(result.integers.end(), input.integers.begin(), input.integers.end());
  }
  result.dims = {static_cast<std::int64_t>(result.integers.size())};
  return result;
}

Constant slice(GraphImport& graph, NodeReader& node) {
  const Constant& input = integers(graph, node, 0);
  const bool as_inputs = graph.operator_set >= 10;
  const std::vector<std::int64_t> starts =
      as_inputs ? graph.constant(node, 1, "its start").integers : node.integers("starts", {});
  const std::vector<std::int64_t> ends =
      as_inputs ? graph.constant(node, 2, "its end").integers : node.integers("ends", {});
  node.ignore("axes");
  const Constant* steps = as_inputs ? graph.optional_constant(node, 4, "its step") : nullptr;
  if (starts.size() != 1 || ends.size() != 1 || (steps != nullptr && steps->integers != std::vector<std::int64_t>{1})) {
    refuse("it takes other parts of a shape than a range");
  }
  const auto size = static_cast<std::int64_t>(input.integers.size());
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
  };
  Constant result{.is_integer = true};
  for (std::int64_t at = place(starts[0]); at < place(ends[0]); ++at) {
    result.integers.push_back(input.integers[static_cast<std::size_t>(at)]);
  }
  result.dims = {static_cast<std::int64_t>(result.integers.size())};
  return result;
}

Constant identity(GraphImport& graph, NodeReader& node) { return graph.constant(node, 0, "its input"); }

using Folding = Constant (*)(GraphImport&, NodeReader&);

Folding find_folding(const std::string& kind) {
  static const std::map<std::string_view, Folding> kFoldings = {
      {"Cast", cast},
      {"Concat", concat},
      {"Constant", constant_node},
      {"ConstantOfShape", constant_of_shape},
      {"Gather", gather},
      {"Identity", identity},
      {"Reshape", reshape},
      {"Slice", slice},
      {"Squeeze", squeeze},
      {"Transpose", transpose},
      {"Unsqueeze", unsqueeze},
  };
  const auto found = kFoldings.find(kind);
  return found == kFoldings.end() ? nullptr : found->second;
}

}  // namespace

bool fold(GraphImport& graph, NodeReader& node) {
  const Folding folding = find_folding(node.kind());
  if (folding == nullptr) return false;
  for (int k = 0; k < node.node().input_size(); ++k) {
    const Value* value = graph.input(node, k);
    if (value != nullptr && !std::holds_alternative<Shared>(*value)) return false;
  }
  Constant constant = folding(graph, node);
  graph.count_made(constant.size());
  graph.put(node, share(std::move(constant)));
  return true;
}

}  // namespace arbalest::jobs
