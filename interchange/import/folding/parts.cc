#include <algorithm>
#include <functional>

#include "interchange/import/folding/extents.h"
#include "interchange/import/folding/folding.h"

namespace arbalest::jobs {

namespace {

void append(const Constant& from, std::size_t begin, std::size_t count, Constant& to) {
  const auto copy = [&](const auto& source, auto& target) {
    const auto first = source.begin() + static_cast<std::ptrdiff_t>(begin);
    target.insert(target.end(), first, first + static_cast<std::ptrdiff_t>(count));
  };
  if (from.is_integer) {
    copy(from.integers, to.integers);
  } else {
    copy(from.numbers, to.numbers);
  }
}

// Product of the extents in front of `axis`, and behind it.
struct Around {
  std::size_t outer = 1;
  std::size_t inner = 1;
};

Around around(const std::vector<std::int64_t>& dims, std::size_t axis) {
  Around result;
  for (std::size_t k = 0; k < axis; ++k) result.outer *= static_cast<std::size_t>(dims[k]);
  for (std::size_t k = axis + 1; k < dims.size(); ++k) result.inner *= static_cast<std::size_t>(dims[k]);
  return result;
}

// The parts of an axis of `input` at `places`, in that order.
Constant take(const GraphImport& graph, const Constant& input, std::size_t axis,
              const std::vector<std::int64_t>& places) {
  Constant result{.dims = input.dims, .is_integer = input.is_integer};
  result.dims[axis] = static_cast<std::int64_t>(places.size());
  check_room(graph, checked_elements(result.dims), input.is_integer);
  const auto extent = static_cast<std::size_t>(input.dims[axis]);
  const auto [outer, inner] = around(input.dims, axis);
  if (inner == 0) return result;
  for (std::size_t o = 0; o < outer; ++o) {
    for (const std::int64_t place : places) {
      append(input, (o * extent + static_cast<std::size_t>(place)) * inner, inner, result);
    }
  }
  return result;
}

// Which parts of an axis of `size` parts a range takes.
std::vector<std::int64_t> places_of(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  if (step == 0) refuse("its step is 0");
  const bool is_backward = step < 0;
  const auto place = [&](std::int64_t at) {
    const std::int64_t counted = at < 0 ? std::max(at, -size - 1) + size : at;
    return is_backward ? std::clamp<std::int64_t>(counted, -1, size - 1) : std::clamp<std::int64_t>(counted, 0, size);
  };
  constexpr std::int64_t kMostPlaces = 1 << 24;
  if (size > kMostPlaces) refuse("it takes a range of an axis of {} elements", size);
  const std::int64_t by = std::clamp(step, -size - 1, size + 1);
  const std::int64_t last = place(end);
  std::vector<std::int64_t> places;
  for (std::int64_t at = place(start); is_backward ? at > last : at < last; at += by) places.push_back(at);
  return places;
}

}  // namespace

Constant fold_gather(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const Constant& index = graph.constant(node, 1, "its places");
  if (!index.is_integer || input.dims.empty()) refuse("its indices are not integers");
  const auto axis = static_cast<std::size_t>(axis_within(node.integer("axis", 0), input.dims.size()));
  std::vector<std::int64_t> places = index.integers;
  for (std::int64_t& place : places) place = axis_within(place, static_cast<std::size_t>(input.dims[axis]));
  Constant result = take(graph, input, axis, places);
  const auto at = result.dims.erase(result.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  result.dims.insert(at, index.dims.begin(), index.dims.end());
  if (result.dims.size() > kMostDimensions) refuse("it makes more than {} dimensions", kMostDimensions);
  return result;
}

Constant fold_concat(GraphImport& graph, NodeReader& node) {
  std::vector<std::reference_wrapper<const Constant>> inputs;
  for (int k = 0; k < node.node().input_size(); ++k) inputs.emplace_back(graph.constant(node, k, "its input"));
  if (inputs.empty()) refuse("it has no input");
  const Constant& first = inputs.front();
  const auto axis = static_cast<std::size_t>(axis_within(node.integer("axis", 1), first.dims.size()));
  Constant result{.dims = first.dims, .is_integer = first.is_integer};
  result.dims[axis] = 0;
  std::size_t elements = 0;
  for (const Constant& input : inputs) {
    std::vector<std::int64_t> expected = first.dims;
    if (input.dims.size() == expected.size()) expected[axis] = input.dims[axis];
    if (input.dims != expected || input.is_integer != first.is_integer) {
      refuse("it joins constants of different extents or types");
    }
    result.dims[axis] += input.dims[axis];
    elements += input.size();
    check_room(graph, elements, first.is_integer);
  }
  const std::size_t outer = around(first.dims, axis).outer;
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Constant& input : inputs) append(input, o * (input.size() / outer), input.size() / outer, result);
  }
  return result;
}

// Ranges of axes.
Constant fold_slice(GraphImport& graph, NodeReader& node) {
  const Constant& input = graph.constant(node, 0, "its input");
  const bool as_inputs = graph.operator_set >= 10;
  const auto list = [&](const char* name, int k, const std::vector<std::int64_t>& usual) {
    if (!as_inputs) return node.integers(name, usual);
    const Constant* given = graph.optional_constant(node, k, "its range");
    return given == nullptr ? usual : given->integers;
  };
  const std::vector<std::int64_t> starts = list("starts", 1, {});
  const std::vector<std::int64_t> ends = list("ends", 2, {});
  std::vector<std::int64_t> usual_axes;
  for (std::size_t k = 0; k < starts.size() && k < input.dims.size(); ++k) {
    usual_axes.push_back(static_cast<std::int64_t>(k));
  }
  std::vector<std::int64_t> axes = list("axes", 3, usual_axes);
  const std::vector<std::int64_t> usual_steps(starts.size(), 1);
  const std::vector<std::int64_t> steps = as_inputs ? list("steps", 4, usual_steps) : usual_steps;
  const std::size_t count = starts.size();
  if (count == 0 || ends.size() != count || axes.size() != count || steps.size() != count) {
    refuse("its starts, ends, axes and steps differ in number");
  }
  for (std::int64_t& axis : axes) axis = axis_within(axis, input.dims.size());
  Constant result = input;
  std::vector<bool> is_taken(input.dims.size(), false);
  for (std::size_t k = 0; k < count; ++k) {
    const auto axis = static_cast<std::size_t>(axes[k]);
    if (is_taken[axis]) refuse("its axes repeat");
    is_taken[axis] = true;
    result = take(graph, result, axis, places_of(starts[k], ends[k], steps[k], result.dims[axis]));
  }
  return result;
}

}  // namespace arbalest::jobs
