#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/ops/window.h"
#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

// The window of a node, and how it slides.
struct Sliding {
  engine::Window window;
  bool is_same = false;  // TensorFlow's padding
};

// An attribute with a length for each direction of the image. A line is an image of height 1.
engine::Extent2d lengths(const Tensor& image, std::vector<std::int64_t> values, const char* name) {
  if (std::cmp_not_equal(values.size(), image.rank() - 2)) {
    refuse("its attribute '{}' has {} numbers; images have two and lines one", name, values.size());
  }
  for (const std::int64_t value : values) {
    if (value < 0 || value > kMostPixels) refuse("its attribute '{}' has the value {}", name, value);
  }
  if (image.view == Tensor::View::kLine) values.insert(values.begin(), 1);
  return {values[0], values[1]};
}

// 1 for each direction.
std::vector<std::int64_t> ones(const Tensor& image) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(image.rank() - 2), 1);
}

void set_pads(engine::Window& window, const std::array<std::int64_t, 4>& pads) {
  for (const std::int64_t pad : pads) {
    if (pad < 0 || pad > kMostPixels) refuse("its padding has the value {}", pad);
  }
  const auto [above, left, below, right] = pads;
  window.padding = {above, left};
  window.extra_padding = {below - above, right - left};
}

// Padding before and behind that gives ceil(input / stride) pixels, with the odd pixel before.
std::array<std::int64_t, 2> same_lower(std::int64_t input, std::int64_t span, std::int64_t stride) {
  const std::int64_t output = (input + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((output - 1) * stride + span - input, 0);
  return {total - total / 2, total / 2};
}

// Above, left, below, right.
std::vector<std::int64_t> pads_of(NodeReader& node, const Tensor& image) {
  const bool is_line = image.view == Tensor::View::kLine;
  std::vector<std::int64_t> pads = node.integers("pads", std::vector<std::int64_t>(is_line ? 2 : 4, 0));
  if (pads.size() != (is_line ? 2 : 4)) {
    refuse("its attribute 'pads' has {} numbers; images have four and lines two", pads.size());
  }
  if (is_line) pads = {0, pads[0], 0, pads[1]};
  return pads;
}

// `padded`: padding that nodes before have added.
Sliding sliding(NodeReader& node, const Tensor& input, const engine::Extent2d& kernel,
                const std::array<std::int64_t, 4>& padded) {
  Sliding result;
  result.window.kernel = kernel;
  result.window.stride = lengths(input, node.integers("strides", ones(input)), "strides");
  result.window.dilation = lengths(input, node.integers("dilations", ones(input)), "dilations");
  std::vector<std::int64_t> pads = pads_of(node, input);
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "SAME_LOWER") {
    const engine::Extent2d span = engine::window_span(result.window);
    if (result.window.stride.height < 1 || result.window.stride.width < 1) refuse("its attribute 'strides' has a 0");
    const auto rows = same_lower(input.shape[2], span.height, result.window.stride.height);
    const auto columns = same_lower(input.shape[3], span.width, result.window.stride.width);
    pads = {rows[0], columns[0], rows[1], columns[1]};
  } else if (mode != "NOTSET" && mode != "SAME_UPPER" && mode != "VALID") {
    refuse("its attribute 'auto_pad' is '{}'", mode);
  }
  result.is_same = mode == "SAME_UPPER";
  std::array<std::int64_t, 4> all = padded;
  const bool is_fitted = result.is_same || mode == "SAME_LOWER";
  if (is_fitted && std::ranges::any_of(padded, [](std::int64_t pad) { return pad != 0; })) {
    refuse("its attribute 'auto_pad' is '{}', and a Pad has padded its image", mode);
  }
  for (std::size_t side = 0; side < all.size() && (mode == "NOTSET" || mode == "SAME_LOWER"); ++side) {
    if (pads[side] < 0 || pads[side] > kMostPixels) refuse("its attribute 'pads' has the value {}", pads[side]);
    all[side] += pads[side];
  }
  if (!result.is_same) set_pads(result.window, all);
  return result;
}

int narrow(std::int64_t value) {
  return static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
}

// Sets a length once if it is the same in both directions.
void set_length(const engine::Extent2d& length, auto set_both, auto set_height, auto set_width) {
  if (length.height == length.width) return set_both(narrow(length.height));
  set_height(narrow(length.height));
  set_width(narrow(length.width));
}

template <typename Message>
void set_window(Message& message, const Sliding& sliding, const engine::Extent2d& usual_stride) {
  const engine::Window& window = sliding.window;
  set_length(
      window.kernel, [&](int v) { message.set_kernel(v); }, [&](int v) { message.set_kernel_height(v); },
      [&](int v) { message.set_kernel_width(v); });
  if (window.stride != usual_stride) {
    set_length(
        window.stride, [&](int v) { message.set_stride(v); }, [&](int v) { message.set_stride_height(v); },
        [&](int v) { message.set_stride_width(v); });
  }
  if (sliding.is_same) return message.set_padding_mode(v1::Padding::SAME);
  if (window.padding != engine::Extent2d{0, 0}) {
    set_length(
        window.padding, [&](int v) { message.set_padding(v); }, [&](int v) { message.set_padding_height(v); },
        [&](int v) { message.set_padding_width(v); });
  }
  if (window.extra_padding != engine::Extent2d{0, 0}) {
    set_length(
        window.extra_padding, [&](int v) { message.set_extra_padding(v); },
        [&](int v) { message.set_extra_padding_height(v); }, [&](int v) { message.set_extra_padding_width(v); });
  }
}

void check_image(const Tensor& tensor) {
  if (tensor.rank() < 3) refuse("its input is no image [n, c, h, w] and no line [n, c, w]");
}

// The image that a window reads, and padding around it.
Padded padded_input(GraphImport& graph, const NodeReader& node) {
  const Value* value = graph.input(node, 0);
  if (value == nullptr) refuse("its input is missing");
  if (const auto* padded = std::get_if<Padded>(value)) {
    if (padded->tensor.view == Tensor::View::kLastChannels) refuse("it reads images in the order [n, h, w, c]");
    return *padded;
  }
  Padded bare{.tensor = graph.channels_first_tensor(node, 0)};
  check_image(bare.tensor);
  return bare;
}

engine::Extent2d kernel_of_pool(NodeReader& node, const Tensor& image) {
  if (!node.has("kernel_shape")) refuse("its attribute 'kernel_shape' is missing");
  return lengths(image, node.integers("kernel_shape", {}), "kernel_shape");
}

// Adds a layer that computes an image of the same order.
void add_window(GraphImport& graph, const NodeReader& node, ImportedLayer layer, const Tensor& input,
                bool is_positive) {
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.is_positive = is_positive;
  graph.put(node, output);
}

bool is_padded(const Padded& input) {
  return std::ranges::any_of(input.pads, [](std::int64_t pad) { return pad != 0; });
}

// Refuses other padding than with zeros.
void check_zeros(const Padded& input) {
  if (!is_padded(input)) return;
  if (input.repeats_edges) {
    refuse(
        "it reads an image that is padded with its repeated edges, as Keras' PyTorch backend pads; export the model "
        "with the JAX or TensorFlow backend");
  }
  if (input.value != 0.0F) refuse("it reads an image that is padded with {}, not 0", input.value);
}

// Whether the padding never exceeds the largest pixel of a window.
bool is_below_pixels(const Padded& input, const engine::Extent2d& kernel, NodeReader& node) {
  if (input.repeats_edges) {  // a window that reaches over an edge holds the pixels of the edge, too
    const auto [above, left, below, right] = input.pads;
    const auto own = node.integers("pads", {});
    const bool adds_more =
        node.integer("ceil_mode", 0) != 0 || std::ranges::any_of(own, [](std::int64_t pad) { return pad != 0; });
    return !adds_more && std::max(above, below) < kernel.height && std::max(left, right) < kernel.width;
  }
  return input.value <= std::numeric_limits<float>::lowest() || (input.tensor.is_positive && input.value <= 0.0F);
}

void set_ceil_mode(v1::Pool& pool, NodeReader& node, const Sliding& sliding) {
  if (node.integer("ceil_mode", 0) == 0) return;
  if (sliding.is_same || sliding.window.extra_padding != engine::Extent2d{0, 0}) {
    refuse("'ceil_mode' needs equal padding on opposite sides");
  }
  pool.set_ceil_mode(true);
}

// PyTorch's newer exporter computes zeros where a convolution has no bias.
bool stands_for_none(const Constant& bias, std::int64_t filters) {
  return bias.name.empty() && std::cmp_equal(bias.size(), filters) &&
         std::ranges::all_of(bias.numbers, [](float number) { return number == 0.0F; });
}

ImportedLayer named(GraphImport& graph, const NodeReader& node) { return {.name = graph.name_for(node)}; }

void import_conv(GraphImport& graph, NodeReader& node) {
  const Padded input = padded_input(graph, node);
  check_zeros(input);
  const Constant& weight = graph.numbers(node, 1, "its weights");
  const Constant* bias = graph.optional_numbers(node, 2, "its bias");
  if (std::cmp_not_equal(weight.dims.size(), input.tensor.rank())) {
    refuse("its weights have {} dimensions, and its input has {}", weight.dims.size(), input.tensor.rank());
  }
  const std::vector<std::int64_t> taps(weight.dims.begin() + 2, weight.dims.end());
  if (node.integers("kernel_shape", taps) != taps) {
    refuse("its attribute 'kernel_shape' differs from its weights' shape");
  }
  const engine::Extent2d kernel = lengths(input.tensor, taps, "kernel_shape");
  ImportedLayer layer{.name = graph.name_for(node, weight.name)};
  v1::Conv& conv = *layer.message.mutable_conv();
  conv.set_filters(narrow(weight.dims[0]));
  const Sliding slides = sliding(node, input.tensor, kernel, input.pads);
  set_window(conv, slides, {1, 1});
  const engine::Extent2d& dilation = slides.window.dilation;
  if (dilation != engine::Extent2d{1, 1}) {
    set_length(
        dilation, [&](int v) { conv.set_dilation(v); }, [&](int v) { conv.set_dilation_height(v); },
        [&](int v) { conv.set_dilation_width(v); });
  }
  const std::int64_t groups = node.integer("group", 1);
  if (groups != 1) conv.set_groups(narrow(std::max<std::int64_t>(groups, 0)));
  layer.weights.push_back(
      weight_of("weight", {weight.dims[0], weight.dims[1], kernel.height, kernel.width}, weight.numbers));
  if (bias == nullptr && graph.has_lost_bias(weight)) {
    layer.weights.push_back(
        weight_of("bias", {weight.dims[0]}, std::vector(static_cast<std::size_t>(weight.dims[0]), 0.0F)));
  } else if (bias == nullptr || stands_for_none(*bias, weight.dims[0])) {
    conv.set_use_bias(false);
  } else {
    layer.weights.push_back(weight_of("bias", {static_cast<std::int64_t>(bias->size())}, bias->numbers));
  }
  add_window(graph, node, std::move(layer), input.tensor, false);
  graph.use_weight(weight);
}

void import_max_pool(GraphImport& graph, NodeReader& node) {
  const Padded input = padded_input(graph, node);
  node.require("storage_order", 0);
  ImportedLayer layer = named(graph, node);
  v1::Pool& pool = *layer.message.mutable_max_pool();
  const engine::Extent2d kernel = kernel_of_pool(node, input.tensor);
  if (is_padded(input) && !is_below_pixels(input, kernel, node)) {
    refuse("it reads an image that is padded with {}",
           input.repeats_edges ? "repeated edges" : fmt::format("{}", input.value));
  }
  const Sliding slides = sliding(node, input.tensor, kernel, input.pads);
  if (slides.window.dilation != engine::Extent2d{1, 1}) refuse("it has 'dilations'");
  set_window(pool, slides, kernel);
  set_ceil_mode(pool, node, slides);
  add_window(graph, node, std::move(layer), input.tensor, input.tensor.is_positive);
}

void import_average_pool(GraphImport& graph, NodeReader& node) {
  const Padded input = padded_input(graph, node);
  check_zeros(input);
  ImportedLayer layer = named(graph, node);
  v1::Pool& pool = *layer.message.mutable_average_pool();
  const engine::Extent2d kernel = kernel_of_pool(node, input.tensor);
  const Sliding slides = sliding(node, input.tensor, kernel, input.pads);
  if (slides.window.dilation != engine::Extent2d{1, 1}) refuse("it has 'dilations'");
  set_window(pool, slides, kernel);
  set_ceil_mode(pool, node, slides);
  const bool counts = node.integer("count_include_pad", 0) != 0;
  if (is_padded(input)) {
    const std::vector<std::int64_t> own = node.integers("pads", {});
    if (!counts && std::ranges::any_of(own, [](std::int64_t pad) { return pad != 0; })) {
      refuse("it counts the zeros of a Pad, but not its own");
    }
    if (pool.ceil_mode()) refuse("it has 'ceil_mode', and a Pad has padded its image");
  }
  if (counts || is_padded(input)) pool.set_count_padding(true);
  add_window(graph, node, std::move(layer), input.tensor, input.tensor.is_positive);
}

void import_global_average_pool(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.channels_first_tensor(node, 0);
  check_image(input);
  ImportedLayer layer = named(graph, node);
  layer.message.mutable_global_average_pool();
  add_window(graph, node, std::move(layer), input, input.is_positive);
}

void import_global_max_pool(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.channels_first_tensor(node, 0);
  check_image(input);
  ImportedLayer layer = named(graph, node);
  const engine::Extent2d kernel{input.shape[2], input.shape[3]};
  Sliding all;
  all.window.kernel = kernel;
  set_window(*layer.message.mutable_max_pool(), all, kernel);
  layer.message.mutable_max_pool()->set_stride(1);
  add_window(graph, node, std::move(layer), input, input.is_positive);
}

}  // namespace

const OperatorTable& window_operators() {
  static const OperatorTable kTable = {{"AveragePool", import_average_pool},
                                       {"Conv", import_conv},
                                       {"GlobalAveragePool", import_global_average_pool},
                                       {"GlobalMaxPool", import_global_max_pool},
                                       {"MaxPool", import_max_pool}};
  return kTable;
}

void write_operator(LayerWriter& layer, const engine::Conv2dSpec& spec) {
  onnx::Node& node = layer.finish("Conv", layer.operands({layer.input()}));
  set_attribute(node, "dilations", std::array{spec.window.dilation.height, spec.window.dilation.width});
  set_attribute(node, "group", spec.groups);
  describe_window(node, spec.window);
}

void write_operator(LayerWriter& layer, const engine::Pool2dSpec& spec) {
  if (layer.of().node.layer->kind() == "global_average_pool") {
    layer.finish("GlobalAveragePool", {layer.input()});
    return;
  }
  const bool averages = spec.kind == engine::PoolKind::kAverage;
  onnx::Node& node = layer.finish(averages ? "AveragePool" : "MaxPool", {layer.input()});
  if (averages) set_attribute(node, "count_include_pad", std::int64_t{spec.count_padding});
  describe_window(node, spec.window);
}

}  // namespace arbalest::jobs
