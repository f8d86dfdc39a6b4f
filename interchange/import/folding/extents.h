// The extents of constants that are computed: products, broadcasts, and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interchange/import/graph/graph_import.h"

namespace arbalest::jobs {

// Product of `dims`. Throws NodeRefused if it exceeds kMostElements, if there are more than kMostDimensions, if an
// extent is negative, or if one is the free number of examples.
std::size_t checked_elements(const std::vector<std::int64_t>& dims);

// Throws NodeRefused if constants of this size may not be computed: the file's share is used up, or integers are more
// than lists of shapes, axes and indices need. Call it before they take memory.
void check_room(const GraphImport& graph, std::size_t elements, bool is_integer);

// The axis counted from 0. Throws NodeRefused if a tensor with `rank` axes has no such axis.
std::int64_t axis_within(std::int64_t axis, std::size_t rank);

// The same elements with other extents.
Constant with_dims(const Constant& constant, std::vector<std::int64_t> dims);

// The extents to which tensors of both extents are broadcast, by ONNX's rule. Throws NodeRefused if they do not fit.
std::vector<std::int64_t> broadcast_dims(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b);

// The constant with its elements repeated to `dims`, which must come from broadcast_dims(). Throws as check_room does.
Constant broadcast(const GraphImport& graph, const Constant& constant, const std::vector<std::int64_t>& dims);

// `values`, whose extents are `dims`, read with a stride for each axis of `result_dims`, in row-major order.
template <typename T>
std::vector<T> strided(const std::vector<T>& values, const std::vector<std::int64_t>& result_dims,
                       const std::vector<std::size_t>& strides) {
  std::vector<T> result(values.empty() ? 0 : checked_elements(result_dims));
  for (std::size_t element = 0; element < result.size(); ++element) {
    std::size_t rest = element;
    std::size_t from = 0;
    for (std::size_t axis = result_dims.size(); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(result_dims[axis]);
      from += rest % extent * strides[axis];
      rest /= extent;
    }
    result[element] = values[from];
  }
  return result;
}

// The distance of neighbours along each axis, in elements.
std::vector<std::size_t> strides_of(const std::vector<std::int64_t>& dims);

}  // namespace arbalest::jobs
