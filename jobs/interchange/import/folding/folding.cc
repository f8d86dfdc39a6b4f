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

constexpr std::size_t kMostIntegers = 1 << 16;  // of a computed list: shapes, axes and places are short

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

void check_integers(std::size_t elements) {
  if (elements > kMostIntegers) refuse("it makes a list of more than {} integers", kMostIntegers);
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

Constant tensor_of(const onnx::Tensor& value) {
  if (!has_numbers(value)) refuse("{}", type_problem(value));
  return constant_of(value);
}

Constant constant_node(GraphImport& /*graph*/, NodeReader& node) {
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
  refuse("its value is no tensor of numbers");
}

Constant constant_of_shape(GraphImport& graph, NodeReader& node) {
  const Constant& shape = graph.constant(node, 0, "its shape");
  const auto elements = static_cast<std::size_t>(checked_elements(shape.integers));
  graph.check_room(elements);  // before they take memory
  const onnx::Attribute* given = node.attribute("value");
  const Constant value = given == nullptr ? Constant{.numbers = {0.0F}} : tensor_of(given->t());
  if (!value.is_single()) refuse("its value is not one number");
  if (value.is_integer) check_integers(elements);
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
  if (rank > kMostDimensions) refuse("it makes more than {} dimensions", kMostDimensions);
  for (std::int64_t& axis : axes) axis = axis_within(axis, rank);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) refuse("its axes repeat");
  std::vector<std::int64_t> dims = input.dims;
  for (const std::int64_t axis : axes) dims.insert(dims.begin() + axis, 1);
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

// `values`, [dims], with the axes in another order.
template <typename T>
std::vector<T> transposed(const std::vector<T>& values, const std::vector<std::int64_t>& dims,
                          const std::vector<std::int64_t>& order) {
  const std::size_t rank = dims.size();
  std::vector<std::size_t> strides(rank, 1);
  for (std::size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * static_cast<std::size_t>(dims[axis]);
  std::vector<T> result(values.size());
  for (std::size_t element = 0; element < result.size(); ++element) {
    std::size_t rest = element;
    std::size_t from = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto source = static_cast<std::size_t>(order[axis]);
      const auto extent = static_cast<std::size_t>(dims[source]);
      from += rest % extent * strides[source];
      rest /= extent;
    }
    result[element] = values[from];
  }
  return result;
}

Constant transpose(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  std::vector<std::int64_t> backward(input.dims.size());
  std::iota(backward.rbegin(), backward.rend(), 0);
  const std::vector<std::int64_t> order = node.integers("perm", backward);
  if (!std::ranges::is_permutation(order, backward)) refuse("its attribute 'perm' is no order of the axes");
  Constant result{.is_integer = input.is_integer, .name = input.name};
  for (const std::int64_t axis : order) result.dims.push_back(input.dims[static_cast<std::size_t>(axis)]);
  result.numbers = transposed(input.numbers, input.dims, order);
  result.integers = transposed(input.integers, input.dims, order);
  return result;
}

Constant cast(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const std::int64_t to = node.integer("to", 0);
  const bool to_floating = to == onnx::Tensor::FLOAT || to == onnx::Tensor::DOUBLE;  // half precision would round
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

// The parts of an axis of `input` at `places`, in that order.
Constant take(const Constant& input, std::int64_t axis, const std::vector<std::int64_t>& places) {
  const auto at = static_cast<std::size_t>(axis);
  const auto extent = static_cast<std::size_t>(input.dims[at]);
  std::size_t inner = 1;
  for (std::size_t k = at + 1; k < input.dims.size(); ++k) inner *= static_cast<std::size_t>(input.dims[k]);
  Constant result{.dims = input.dims, .is_integer = input.is_integer};
  result.dims[at] = static_cast<std::int64_t>(places.size());
  const std::size_t outer = extent * inner == 0 ? 0 : input.size() / (extent * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    for (const std::int64_t place : places) {
      const std::size_t from = (o * extent + static_cast<std::size_t>(place)) * inner;
      for (std::size_t i = from; i < from + inner; ++i) {
        if (input.is_integer) result.integers.push_back(input.integers[i]);
        if (!input.is_integer) result.numbers.push_back(input.numbers[i]);
      }
    }
  }
  return result;
}

Constant gather(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const Constant& index = graph.constant(node, 1, "its places");
  if (!index.is_integer || index.dims.size() > 1 || input.dims.empty()) refuse("it takes other parts than a list");
  const std::int64_t axis = axis_within(node.integer("axis", 0), input.dims.size());
  std::vector<std::int64_t> places = index.integers;
  const auto extent = static_cast<std::size_t>(input.dims[static_cast<std::size_t>(axis)]);
  for (std::int64_t& place : places) place = axis_within(place, extent);
  const std::size_t elements = extent == 0 ? 0 : input.size() / extent * places.size();
  graph.check_room(elements);
  if (input.is_integer) check_integers(elements);
  Constant result = take(input, axis, places);
  if (index.dims.empty()) result.dims.erase(result.dims.begin() + axis);
  return result;
}

Constant concat(GraphImport& graph, NodeReader& node) {
  std::vector<std::reference_wrapper<const Constant>> inputs;
  std::size_t elements = 0;
  for (int k = 0; k < node.node().input_size(); ++k) {
    const Constant& input = inputs.emplace_back(graph.constant(node, k, "its input"));
    if (!input.is_integer || input.dims.size() != 1) refuse("it joins constants that are no lists of integers");
    elements += input.size();
  }
  check_integers(elements);
  Constant result{.is_integer = true};
  for (const Constant& input : inputs) {
    result.integers.insert(result.integers.end(), input.integers.begin(), input.integers.end());
  }
  node.ignore("axis");  // there is one only
  result.dims = {static_cast<std::int64_t>(result.integers.size())};
  return result;
}

// A range of one axis, forwards or backwards.
Constant slice(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const bool as_inputs = graph.operator_set >= 10;
  const auto list = [&](const char* name, int k, std::int64_t unless_given) {
    const std::vector<std::int64_t> usual{unless_given};
    if (!as_inputs) return node.integers(name, usual);
    const Constant* given = graph.optional_constant(node, k, "its range");
    return given == nullptr ? usual : given->integers;
  };
  const std::vector<std::int64_t> starts = list("starts", 1, 0);
  const std::vector<std::int64_t> ends = list("ends", 2, 0);
  const std::vector<std::int64_t> axes = list("axes", 3, 0);
  const std::vector<std::int64_t> steps = list("steps", 4, 1);
  if (starts.size() != 1 || ends.size() != 1 || axes.size() != 1 || steps.size() != 1 ||
      (steps[0] != 1 && steps[0] != -1)) {
    refuse("it takes other parts than a range of one axis");
  }
  const std::int64_t axis = axis_within(axes[0], input.dims.size());
  const std::int64_t size = input.dims[static_cast<std::size_t>(axis)];
  const bool is_backward = steps[0] < 0;
  const auto place = [&](std::int64_t at) {
    const std::int64_t counted = at < 0 ? std::max(at, -size - 1) + size : at;
    return is_backward ? std::clamp<std::int64_t>(counted, -1, size - 1) : std::clamp<std::int64_t>(counted, 0, size);
  };
  std::vector<std::int64_t> places;
  const std::int64_t end = place(ends[0]);
  for (std::int64_t at = place(starts[0]); is_backward ? at > end : at < end; at += steps[0]) places.push_back(at);
  return take(input, axis, places);
}

Constant shape(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  return {.dims = {static_cast<std::int64_t>(input.dims.size())}, .is_integer = true, .integers = input.dims};
}

// Sums, differences and products of integers: of two lists, or of a list and a number.
Constant arithmetic(GraphImport& graph, NodeReader& node) {
  const Constant& a = graph.constant(node, 0, "its input");
  const Constant& b = graph.constant(node, 1, "its input");
  const bool fits = a.dims == b.dims || a.is_single() || b.is_single();
  constexpr std::int64_t kMost = 1 << 30;  // sums and products of such numbers do not overflow
  const auto is_large = [](std::int64_t value) { return value > kMost || value < -kMost; };
  if (!a.is_integer || !b.is_integer || !fits || a.size() == 0 || b.size() == 0 ||
      std::ranges::any_of(a.integers, is_large) || std::ranges::any_of(b.integers, is_large)) {
    refuse("it computes with constants other than small integers");
  }
  Constant result{.dims = a.size() >= b.size() ? a.dims : b.dims, .is_integer = true};
  for (std::size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
    const std::int64_t x = a.integers[a.is_single() ? 0 : k];
    const std::int64_t y = b.integers[b.is_single() ? 0 : k];
    result.integers.push_back(node.kind() == "Mul" ? x * y : node.kind() == "Add" ? x + y : x - y);
  }
  return result;
}

Constant identity(GraphImport& graph, NodeReader& node) { return graph.constant(node, 0, "its input"); }

using Folding = Constant (*)(GraphImport&, NodeReader&);

Folding find_folding(const std::string& kind) {
  static const std::map<std::string_view, Folding> kFoldings = {
      {"Add", arithmetic},
      {"Cast", cast},
      {"Concat", concat},
      {"Constant", constant_node},
      {"ConstantOfShape", constant_of_shape},
      {"Gather", gather},
      {"Identity", identity},
      {"Mul", arithmetic},
      {"Reshape", reshape},
      {"Shape", shape},
      {"Slice", slice},
      {"Squeeze", squeeze},
      {"Sub", arithmetic},
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
