#include <algorithm>
#include <numeric>
#include <utility>

#include "interchange/import/folding/extents.h"
#include "interchange/import/folding/folding.h"

namespace arbalest::jobs {

namespace {

std::vector<std::int64_t> given_axes(GraphImport& graph, NodeReader& node) {
  if (graph.operator_set < 13) return node.integers("axes", {});
  const Constant* axes = graph.optional_constant(node, 1, "its axes");
  return axes == nullptr ? std::vector<std::int64_t>{} : axes->integers;
}

}  // namespace

Constant fold_unsqueeze(GraphImport& graph, NodeReader& node) {
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

Constant fold_squeeze(GraphImport& graph, NodeReader& node) {
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

Constant fold_reshape(GraphImport& graph, NodeReader& node) {
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
  const std::size_t elements = checked_elements(dims);
  if (elements != input.size()) refuse("it makes {} elements of {}", elements, size);
  return with_dims(input, std::move(dims));
}

Constant fold_expand(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const Constant& shape = graph.constant(node, 1, "its shape");
  if (!shape.is_integer) refuse("its shape is no list of integers");
  checked_elements(shape.integers);
  return broadcast(graph, input, broadcast_dims(input.dims, shape.integers));
}

Constant fold_transpose(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  std::vector<std::int64_t> backward(input.dims.size());
  std::iota(backward.rbegin(), backward.rend(), 0);
  const std::vector<std::int64_t> order = node.integers("perm", backward);
  if (!std::ranges::is_permutation(order, backward)) refuse("its attribute 'perm' is no order of the axes");
  Constant result{.is_integer = input.is_integer, .name = input.name};
  const std::vector<std::size_t> own = strides_of(input.dims);
  std::vector<std::size_t> strides;
  for (const std::int64_t axis : order) {
    result.dims.push_back(input.dims[static_cast<std::size_t>(axis)]);
    strides.push_back(own[static_cast<std::size_t>(axis)]);
  }
  result.numbers = strided(input.numbers, result.dims, strides);
  result.integers = strided(input.integers, result.dims, strides);
  return result;
}

}  // namespace arbalest::jobs
