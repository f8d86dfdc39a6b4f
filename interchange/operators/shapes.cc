#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

// Product of the extents of an example.
std::int64_t example_size(const Tensor& tensor) { return tensor.shape.elements(); }

// The tensor as a vector of features. `node`: names the layer.
void put_flattened(GraphImport& graph, const NodeReader& node, const Tensor& input) {
  if (input.view == Tensor::View::kVector) return graph.put(node, input);
  ImportedLayer layer{.name = graph.name_for(node)};
  layer.message.mutable_flatten();
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.is_positive = input.is_positive;
  output.channels_first = input.channels_first;
  // One channel, or one pixel: both orders are the same.
  const bool is_image = input.view == Tensor::View::kLastChannels && input.shape[1] > 1;
  if (is_image && input.shape[2] * input.shape[3] > 1) {
    output.channels_first = {input.shape[1], input.shape[2], input.shape[3]};
  }
  graph.put(node, output);
}

// Whether `extent` of a target shape stands for all examples.
bool is_batch(const GraphImport& graph, std::int64_t extent, std::int64_t rest_of_example) {
  const bool is_left_over = extent == -1 && rest_of_example > 0;
  return extent == kFreeBatch || extent == 0 || is_left_over || extent == graph.fixed_batch();
}

std::vector<std::int64_t> axes_of(GraphImport& graph, NodeReader& node, std::int64_t as_input_since, int rank) {
  std::vector<std::int64_t> axes;
  if (graph.operator_set < as_input_since) {
    axes = node.integers("axes", {});
  } else if (const Constant* given = graph.optional_constant(node, 1, "its axes")) {
    axes = given->integers;
  }
  for (std::int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) refuse("it has no axis {}", axis);
    if (axis < 0) axis += rank;
  }
  std::ranges::sort(axes);
  return axes;
}

// Axes of the pixels in the file.
std::vector<std::int64_t> pixel_axes(const Tensor& tensor) {
  if (tensor.view == Tensor::View::kLastChannels) return {1, 2};
  if (tensor.view == Tensor::View::kLine) return {2};
  return {2, 3};
}

// Whether a Reshape to these extents (the first is that of the examples) moves the channels, which is then all that it
// does: an image of one channel or one pixel has the same elements in both orders.
bool moves_channels(const Tensor& image, const std::vector<std::int64_t>& extents) {
  const bool is_image = image.view == Tensor::View::kSame || image.view == Tensor::View::kLastChannels;
  if (!is_image || image.shape.rank() != 4 || extents.size() != 4) return false;
  const std::int64_t channels = image.shape[1];
  const std::int64_t height = image.shape[2];
  const std::int64_t width = image.shape[3];
  if (channels != 1 && height * width != 1) return false;
  const auto moved =
      image.view == Tensor::View::kSame ? std::array{height, width, channels} : std::array{channels, height, width};
  return std::ranges::equal(std::span(extents).subspan(1), moved);
}

void import_flatten(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.tensor(node, 0);
  const std::int64_t axis = node.integer("axis", 1);
  if (axis != 1 && axis != 1 - input.rank()) refuse("it flattens from axis {}; only examples can be flattened", axis);
  put_flattened(graph, node, input);
}

void import_reshape(GraphImport& graph, NodeReader& node) {
  Tensor input = graph.tensor(node, 0);
  const bool has_zeros = node.integer("allowzero", 0) != 0;
  node.ignore("consumed_inputs");
  const std::vector<std::int64_t> target =
      graph.operator_set < 5 ? node.integers("shape", {}) : graph.constant(node, 1, "its shape").integers;
  if (has_zeros && std::ranges::count(target, 0) > 0) refuse("it makes a tensor without elements");
  const std::int64_t size = example_size(input);
  const std::vector<std::int64_t> dims = input.dims();
  // Each extent, where it is known; 0 stands for the input's.
  std::vector<std::int64_t> extents = target;
  for (std::size_t axis = 1; axis < extents.size() && axis < dims.size(); ++axis) {
    if (extents[axis] == 0) extents[axis] = dims[axis];
  }
  if (extents.size() >= 2 && is_batch(graph, extents[0], extents[1])) {
    const auto left_over = std::ranges::count(extents.begin() + 1, extents.end(), -1);
    std::int64_t known = 1;
    for (std::size_t axis = 1; axis < extents.size(); ++axis) {
      if (extents[axis] == -1) continue;
      const bool fits = extents[axis] >= 0 && extents[axis] <= size && known <= size;
      known = fits ? known * extents[axis] : size + 1;
    }
    for (std::int64_t& extent : extents) {
      if (extent == -1 && left_over == 1 && known > 0 && known <= size) extent = size / known;
    }
    const bool is_same = std::equal(extents.begin() + 1, extents.end(), dims.begin() + 1, dims.end());
    if (is_same) return graph.put(node, input);
    if (moves_channels(input, extents)) {
      const bool is_last = input.view == Tensor::View::kLastChannels;
      input.view = is_last ? Tensor::View::kSame : Tensor::View::kLastChannels;
      return graph.put(node, input);
    }
    if (extents.size() == 2 && extents[1] == size) return put_flattened(graph, node, input);
  }
  refuse("it must give each example the shape of a vector");
}

// The height of 1 that lines get for a window of two dimensions.
void import_unsqueeze(GraphImport& graph, NodeReader& node) {
  Tensor input = graph.tensor(node, 0);
  const std::vector<std::int64_t> axes = axes_of(graph, node, 13, input.rank() + 1);
  if (input.view != Tensor::View::kLine || axes != std::vector<std::int64_t>{2}) {
    refuse("Unsqueeze may add only the height of lines [n, c, w]");
  }
  input.view = Tensor::View::kSame;
  graph.put(node, input);
}

void import_squeeze(GraphImport& graph, NodeReader& node) {
  Tensor input = graph.tensor(node, 0);
  const std::vector<std::int64_t> axes = axes_of(graph, node, 13, input.rank());
  const bool is_row = input.view == Tensor::View::kSame && input.shape.rank() == 4 && input.shape[2] == 1;
  if (is_row && axes == std::vector<std::int64_t>{2}) {
    input.view = Tensor::View::kLine;
    return graph.put(node, input);
  }
  const bool is_pixel = input.shape.rank() == 4 && input.shape[2] == 1 && input.shape[3] == 1;
  if (!is_pixel || input.rank() < 3 || (!axes.empty() && axes != pixel_axes(input))) {
    refuse("Squeeze may remove only 1x1 spatial dimensions, or the height of [n, c, 1, w]");
  }
  put_flattened(graph, node, input);
}

// The tensor with the order of its dimensions changed.
Tensor transposed(Tensor input, const std::vector<std::int64_t>& order) {
  const std::vector<std::int64_t> first{0, 3, 1, 2};
  const std::vector<std::int64_t> last{0, 2, 3, 1};
  std::vector<std::int64_t> unchanged(static_cast<std::size_t>(input.rank()));
  std::iota(unchanged.begin(), unchanged.end(), 0);
  if (order == unchanged) return input;
  if (input.view == Tensor::View::kLastChannels && order == first) {
    input.view = Tensor::View::kSame;
  } else if (input.view == Tensor::View::kSame && input.shape.rank() == 4 && order == last) {
    input.view = Tensor::View::kLastChannels;
  } else {
    refuse("it may only move the channels before or behind the pixels");
  }
  return input;
}

void import_transpose(GraphImport& graph, NodeReader& node) {
  const std::vector<std::int64_t> order = node.integers("perm", {});
  const Value* value = graph.input(node, 0);
  const auto* padded = value == nullptr ? nullptr : std::get_if<Padded>(value);
  if (padded == nullptr) return graph.put(node, transposed(graph.tensor(node, 0), order));
  Padded result = *padded;  // its pads have the order of our dimensions
  result.tensor = transposed(padded->tensor, order);
  graph.put(node, result);
}

void import_shape(GraphImport& graph, NodeReader& node) {
  graph.put(node, std::make_shared<const Constant>(shape_constant(node, graph.tensor(node, 0).dims())));
}

void import_cast(GraphImport& graph, NodeReader& node) {
  const std::int64_t to = node.integer("to", 0);
  const Value* value = graph.input(node, 0);
  if (value == nullptr) refuse("its input is missing");
  node.ignore("saturate");  // of types with 8 bits
  node.ignore("round_mode");
  const bool is_half = to == onnx::Tensor::FLOAT16 || to == onnx::Tensor::BFLOAT16;
  const bool is_floating = to == onnx::Tensor::FLOAT || to == onnx::Tensor::DOUBLE || is_half;
  const bool is_integer = to == onnx::Tensor::INT64 || to == onnx::Tensor::INT32;
  const bool is_ids = std::holds_alternative<IdColumn>(*value);
  if (is_ids ? !is_integer : !is_floating) refuse("it converts to type {}", to);
  if (is_half) graph.note("the file computes in half precision; here its weights are widened, and float32 computes");
  graph.put(node, *value);
}

void import_cast_like(GraphImport& graph, NodeReader& node) {
  const Value* value = graph.input(node, 0);
  const Value* like = graph.input(node, 1);
  if (value == nullptr || like == nullptr) refuse("an input is missing");
  node.ignore("saturate");
  node.ignore("round_mode");
  const auto* constant = std::get_if<std::shared_ptr<const Constant>>(like);
  const bool to_integer = constant == nullptr ? std::holds_alternative<IdColumn>(*like) : (*constant)->is_integer;
  if (to_integer != std::holds_alternative<IdColumn>(*value)) refuse("it converts between numbers and integers");
  graph.put(node, *value);
}

void import_concat(GraphImport& graph, NodeReader& node) {
  std::vector<Tensor> inputs;
  for (int k = 0; k < node.node().input_size(); ++k) inputs.push_back(graph.tensor(node, k));
  if (inputs.empty()) refuse("it has no input");
  const Tensor& first = inputs.front();
  const std::int64_t axis = node.integer("axis", 1);
  if ((axis < 0 ? axis + first.rank() : axis) != first.channel_axis()) refuse("it joins along axis {}", axis);
  for (const Tensor& input : inputs) {
    if (input.view != first.view || !input.channels_first.empty()) refuse("its inputs differ in their order");
  }
  if (inputs.size() == 1) return graph.put(node, first);
  ImportedLayer layer{.name = graph.name_for(node)};
  layer.message.mutable_concat();
  const bool is_positive = std::ranges::all_of(inputs, &Tensor::is_positive);
  Tensor output = graph.layers().add(std::move(layer), inputs);
  output.view = first.view;
  output.is_positive = is_positive;
  graph.put(node, output);
}

void import_reduce_mean(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.tensor(node, 0);
  const bool keeps = node.integer("keepdims", 1) != 0;
  node.ignore("noop_with_empty_axes");
  const std::vector<std::int64_t> axes = axes_of(graph, node, 18, input.rank());
  if (input.rank() < 3 || axes != pixel_axes(input)) refuse("the mean must be over the pixels of an image");
  ImportedLayer layer{.name = graph.name_for(node)};
  layer.message.mutable_global_average_pool();
  if (!keeps) layer.name += "/mean";
  Tensor mean = graph.layers().add(std::move(layer), {input});
  mean.view = input.view;
  mean.is_positive = input.is_positive;
  if (keeps) return graph.put(node, mean);
  put_flattened(graph, node, mean);
}

// The sum of the products of two vectors.
void import_reduce_sum(GraphImport& graph, NodeReader& node) {
  const Formula* formula = graph.formula(node, 0, Formula::Kind::kProduct);
  if (formula == nullptr) refuse("it is not the sum of the products of two vectors");
  node.ignore("noop_with_empty_axes");
  const std::vector<std::int64_t> axes = axes_of(graph, node, 13, 2);
  if (axes != std::vector<std::int64_t>{1} || node.integer("keepdims", 1) == 0) {
    refuse("it must sum over the features and keep their dimension");
  }
  if (formula->x.channels_first != formula->other.channels_first) refuse("its inputs differ in their order");
  ImportedLayer layer{.name = graph.name_for(node)};
  layer.message.mutable_inner_product();
  graph.add(node, std::move(layer), {formula->x, formula->other});
}

}  // namespace

void import_identity(GraphImport& graph, NodeReader& node) {
  const Value* value = graph.input(node, 0);
  if (value == nullptr) refuse("its input is missing");
  graph.put(node, *value);
}

const OperatorTable& shape_operators() {
  static const OperatorTable kTable = {{"Cast", import_cast},
                                       {"CastLike", import_cast_like},
                                       {"Concat", import_concat},
                                       {"Flatten", import_flatten},
                                       {"Identity", import_identity},
                                       {"ReduceMean", import_reduce_mean},
                                       {"ReduceSum", import_reduce_sum},
                                       {"Reshape", import_reshape},
                                       {"Shape", import_shape},
                                       {"Squeeze", import_squeeze},
                                       {"Transpose", import_transpose},
                                       {"Unsqueeze", import_unsqueeze}};
  return kTable;
}

void write_operator(LayerWriter& layer, const engine::FlattenSpec& /*spec*/) {
  set_attribute(layer.finish("Flatten", {layer.input()}), "axis", std::int64_t{1});
}

void write_operator(LayerWriter& layer, const engine::ConcatSpec& /*spec*/) {
  set_attribute(layer.finish("Concat", layer.of().values), "axis", std::int64_t{1});
}

}  // namespace arbalest::jobs
