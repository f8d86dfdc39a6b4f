#include "interchange/import/folding/extents.h"

#include <algorithm>
#include <utility>

namespace arbalest::jobs {

namespace {

constexpr std::size_t kMostIntegers = 1 << 16;

}  // namespace

std::size_t checked_elements(const std::vector<std::int64_t>& dims) {
  if (dims.size() > kMostDimensions) refuse("it makes more than {} dimensions", kMostDimensions);
  if (std::ranges::count(dims, kFreeBatch) > 0) refuse("its shape depends on the number of examples");
  std::int64_t elements = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0) refuse("it makes a shape with the extent {}", extent);
    if (extent > kMostElements || elements * extent > kMostElements) {
      refuse("it makes a constant of more than {} elements", kMostElements);
    }
    elements *= extent;
  }
  return static_cast<std::size_t>(elements);
}

void check_room(const GraphImport& graph, std::size_t elements, bool is_integer) {
  graph.check_room(elements);
  if (is_integer && elements > kMostIntegers) refuse("it makes a list of more than {} integers", kMostIntegers);
}

std::int64_t axis_within(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) refuse("it has no axis {}", axis);
  return axis < 0 ? axis + size : axis;
}

Constant with_dims(const Constant& constant, std::vector<std::int64_t> dims) {
  Constant result = constant;
  result.dims = std::move(dims);
  return result;
}

std::vector<std::int64_t> broadcast_dims(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  std::vector<std::int64_t> dims(rank);
  // Extents are aligned at the end.
  const auto extent = [rank](const std::vector<std::int64_t>& some, std::size_t axis) {
    return axis + some.size() < rank ? 1 : some[axis + some.size() - rank];
  };
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t x = extent(a, axis);
    const std::int64_t y = extent(b, axis);
    if (x != y && x != 1 && y != 1) refuse("its inputs have the extents {} and {} along one axis", x, y);
    dims[axis] = x == 1 ? y : x;
  }
  return dims;
}

std::vector<std::size_t> strides_of(const std::vector<std::int64_t>& dims) {
  std::vector<std::size_t> strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * static_cast<std::size_t>(dims[axis]);
  }
  return strides;
}

Constant broadcast(const GraphImport& graph, const Constant& constant, const std::vector<std::int64_t>& dims) {
  if (constant.dims == dims) return constant;
  check_room(graph, checked_elements(dims), constant.is_integer);
  std::vector<std::size_t> strides(dims.size() - constant.dims.size(), 0);
  const std::vector<std::size_t> own = strides_of(constant.dims);
  for (std::size_t axis = 0; axis < own.size(); ++axis) strides.push_back(constant.dims[axis] == 1 ? 0 : own[axis]);
  return {.dims = dims,
          .is_integer = constant.is_integer,
          .numbers = strided(constant.numbers, dims, strides),
          .integers = strided(constant.integers, dims, strides)};
}

}  // namespace arbalest::jobs
