#include "interchange/import/formulas/spelled_windows.h"

#include <algorithm>
#include <optional>

#include "interchange/import/graph/constant.h"

namespace arbalest::jobs {

namespace {

constexpr std::size_t kRank = 4;  // of images

using Integers = std::vector<std::int64_t>;

// A window over all dimensions of an image: examples, channels and pixels in any order.
struct Window {
  std::string input;
  Integers kernel;
  Integers strides;
  Integers pads;
  bool has_last_channels = false;
};

// The input of nodes that put two dimensions of extent 1 in front. None if there are no such nodes.
std::optional<std::string> without_added(const FormulaGraph& graph, const std::string& value) {
  constexpr std::int64_t kAsInputSince = 13;
  const onnx::Node* second = graph.writer(value, "Unsqueeze");
  if (second == nullptr || second->input_size() == 0) return std::nullopt;
  const std::optional<Integers> axes = graph.axes(*second, kAsInputSince);
  if (axes == Integers{0, 1}) return second->input(0);
  if (axes != Integers{1} && axes != Integers{0}) return std::nullopt;
  const onnx::Node* first = graph.writer(second->input(0), "Unsqueeze");
  if (first == nullptr || first->input_size() == 0 || graph.axes(*first, kAsInputSince) != Integers{0})
    return std::nullopt;
  return first->input(0);
}

// Finds out which dimensions the window covers. It may cover one example, and one channel.
bool find_channels(Window& window) {
  const auto is_one = [&](std::size_t axis) {
    return window.kernel[axis] == 1 && window.strides[axis] == 1 && window.pads[axis] == 0 &&
           window.pads[axis + kRank] == 0;
  };
  const bool may_be_first = is_one(1);
  window.has_last_channels = is_one(3);
  return is_one(0) && may_be_first != window.has_last_channels;
}

// The window of a node between those that add and remove dimensions. `kernel`: its extents.
std::optional<Window> window_of(const FormulaGraph& graph, const onnx::Node& node, const Integers& kernel) {
  if (node.input_size() == 0) return std::nullopt;
  const std::optional<std::string> input = without_added(graph, node.input(0));
  if (!input || kernel.size() != kRank) return std::nullopt;
  Window window{.input = *input,
                .kernel = kernel,
                .strides = integers_of(node, "strides", Integers(kRank, 1)),
                .pads = integers_of(node, "pads", Integers(2 * kRank, 0))};
  const bool has_usual_dilations = integers_of(node, "dilations", Integers(kRank, 1)) == Integers(kRank, 1);
  const auto may_have = {"strides", "pads", "dilations", "kernel_shape", "group"};
  const bool has_others = std::ranges::any_of(node.attribute(), [&](const onnx::Attribute& attribute) {
    if (attribute.name() == "ceil_mode" || attribute.name() == "storage_order") return attribute.i() != 0;
    return std::ranges::find(may_have, attribute.name()) == may_have.end();
  });
  if (window.strides.size() != kRank || window.pads.size() != 2 * kRank || !has_usual_dilations || has_others) {
    return std::nullopt;
  }
  return window;
}

// The node between those that add dimensions and `squeeze`.
const onnx::Node* inner_node(const FormulaGraph& graph, const onnx::Node& squeeze, std::string_view kind) {
  if (squeeze.op_type() != "Squeeze" || squeeze.input_size() == 0) return nullptr;
  return graph.axes(squeeze, 13) == Integers{0, 1} ? graph.writer(squeeze.input(0), kind) : nullptr;
}

bool is_all_ones(const onnx::Tensor& tensor) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  if (raw_bytes(tensor) > kMostBytes) return false;
  const Constant constant = constant_of(tensor);
  return !constant.is_integer && std::ranges::all_of(constant.numbers, [](float number) { return number == 1.0F; });
}

// A convolution with ones: the sums of the window's pixels.
std::optional<Window> sums_of(const FormulaGraph& graph, const onnx::Node& squeeze) {
  const onnx::Node* convolution = inner_node(graph, squeeze, "Conv");
  if (convolution == nullptr || convolution->input_size() != 2) return std::nullopt;
  const onnx::Tensor* kernel = graph.tensor(convolution->input(1));
  const onnx::Attribute* groups = find_attribute(*convolution, "group");
  if (kernel == nullptr || kernel->dims_size() != 2 + static_cast<int>(kRank) ||
      (groups != nullptr && groups->i() != 1) || kernel->dims(0) != 1 || kernel->dims(1) != 1 ||
      !is_all_ones(*kernel)) {
    return std::nullopt;
  }
  const Integers extents(kernel->dims().begin() + 2, kernel->dims().end());
  if (integers_of(*convolution, "kernel_shape", extents) != extents) return std::nullopt;
  return window_of(graph, *convolution, extents);
}

// The shape of a constant of ones; none if the value is another one.
std::optional<Integers> shape_of_ones(const FormulaGraph& graph, const std::string& value) {
  if (const onnx::Node* node = graph.writer(value, "ConstantOfShape"); node != nullptr && node->input_size() == 1) {
    const onnx::Attribute* filled = find_attribute(*node, "value");
    if (filled == nullptr || !filled->has_t() || !has_numbers(filled->t()) || !is_all_ones(filled->t())) return {};
    return graph.integers(node->input(0));
  }
  const onnx::Tensor* tensor = graph.tensor(value);
  if (tensor == nullptr || !is_all_ones(*tensor)) return std::nullopt;
  return Integers(tensor->dims().begin(), tensor->dims().end());
}

class Writer {
 public:
  Writer(const Window& window, const onnx::Node& last, const std::string& prefix)
      : window_(window), output_(last.output(0)), prefix_(prefix), value_(window.input) {}

  void add(const char* kind, const std::vector<std::string>& more_inputs = {}) {
    std::vector<std::string> inputs = {value_};
    inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
    value_ = prefix_ + output_ + "/" + std::to_string(++steps_);
    result_.nodes.push_back(make_node(kind, inputs, value_, prefix_));
  }

  void transpose(const Integers& order) {
    if (!window_.has_last_channels) return;
    add("Transpose");
    add_integers(result_.nodes.back(), "perm", order);
  }

  void pool(const char* kind, const char* name) {
    add(kind);
    onnx::Node& node = result_.nodes.back();
    node.set_name(name);
    const std::size_t first = window_.has_last_channels ? 1 : 2;  // axis of the pixels
    const auto pixels = [&](const Integers& values, std::size_t from) {
      return Integers{values[from], values[from + 1]};
    };
    add_integers(node, "kernel_shape", pixels(window_.kernel, first));
    add_integers(node, "strides", pixels(window_.strides, first));
    const auto& pads = window_.pads;
    add_integers(node, "pads", {pads[first], pads[first + 1], pads[first + kRank], pads[first + kRank + 1]});
  }

  // A Reshape to the shape that the image, with its channels first, must have: another one is refused.
  void require(const Integers& pixels) {
    const std::string shape = prefix_ + output_ + "/shape";
    onnx::Tensor& tensor = result_.tensors.emplace_back();
    tensor.set_name(shape);
    tensor.set_data_type(onnx::Tensor::INT64);
    tensor.add_dims(static_cast<std::int64_t>(kRank));
    for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{-1}, pixels[0], pixels[1]})
      tensor.add_int64_data(extent);
    add("Reshape", {shape});
  }

  void count_padding() {
    onnx::Attribute& attribute = *result_.nodes.back().add_attribute();
    attribute.set_name("count_include_pad");
    attribute.set_type(onnx::Attribute::INT);
    attribute.set_i(1);
  }

  Replacement finish() && {
    result_.nodes.back().set_output(0, output_);
    return std::move(result_);
  }

 private:
  const Window& window_;
  std::string output_;
  std::string prefix_;
  std::string value_;
  int steps_ = 0;
  Replacement result_;
};

const Integers kToFirst{0, 3, 1, 2};
const Integers kToLast{0, 2, 3, 1};

Replacement find_max_pool(const FormulaGraph& graph, const onnx::Node& last, const std::string& prefix) {
  const onnx::Node* pool = inner_node(graph, last, "MaxPool");
  if (pool == nullptr) return {};
  std::optional<Window> window = window_of(graph, *pool, integers_of(*pool, "kernel_shape", {}));
  if (!window || !find_channels(*window)) return {};
  Writer writer(*window, last, prefix);
  writer.transpose(kToFirst);
  writer.pool("MaxPool", "max_pool");
  writer.transpose(kToLast);
  return std::move(writer).finish();
}

// Sums of windows, divided by the number of their pixels.
Replacement find_average_pool(const FormulaGraph& graph, const onnx::Node& last, const std::string& prefix) {
  if (last.op_type() != "Div" || last.input_size() != 2) return {};
  const onnx::Node* squeeze = graph.writer(last.input(0));
  std::optional<Window> sums = squeeze == nullptr ? std::nullopt : sums_of(graph, *squeeze);
  if (!sums || !find_channels(*sums)) return {};
  const std::size_t first = sums->has_last_channels ? 1 : 2;
  Writer writer(*sums, last, prefix);
  writer.transpose(kToFirst);
  bool counts_padding = false;
  if (const std::optional<float> divisor = graph.number(last.input(1))) {
    const std::int64_t pixels = sums->kernel[first] * sums->kernel[first + 1];
    if (*divisor != static_cast<float>(pixels)) return {};
    counts_padding = std::ranges::any_of(sums->pads, [](std::int64_t pad) { return pad != 0; });
  } else {
    const onnx::Node* counted = graph.writer(last.input(1));
    std::optional<Window> counts = counted == nullptr ? std::nullopt : sums_of(graph, *counted);
    if (!counts || counts->kernel != sums->kernel || counts->strides != sums->strides || counts->pads != sums->pads) {
      return {};
    }
    const std::optional<Integers> ones = shape_of_ones(graph, counts->input);
    const std::size_t channels = sums->has_last_channels ? 3 : 1;
    if (!ones || ones->size() != kRank || (*ones)[0] != 1 || (*ones)[channels] != 1) return {};
    writer.require({(*ones)[first], (*ones)[first + 1]});
  }
  writer.pool("AveragePool", "average_pool");
  if (counts_padding) writer.count_padding();
  writer.transpose(kToLast);
  return std::move(writer).finish();
}

// The largest pixel of each channel.
Replacement find_global_max_pool(const FormulaGraph& graph, const onnx::Node& last, const std::string& prefix) {
  constexpr std::int64_t kAsInputSince = 18;
  if (last.op_type() != "ReduceMax" || last.input_size() == 0) return {};
  const std::optional<Integers> axes = graph.axes(last, kAsInputSince);
  const bool is_last = axes == Integers{1, 2};
  if (!is_last && axes != Integers{2, 3} && axes != Integers{-2, -1}) return {};
  const onnx::Attribute* keeps = find_attribute(last, "keepdims");
  const Window whole{.input = last.input(0), .kernel = {}, .strides = {}, .pads = {}, .has_last_channels = is_last};
  Writer writer(whole, last, prefix);
  writer.transpose(kToFirst);
  writer.add("GlobalMaxPool");
  if (keeps != nullptr && keeps->i() == 0) {
    writer.add("Flatten");
  } else {
    writer.transpose(kToLast);
  }
  return std::move(writer).finish();
}

}  // namespace

Replacement find_spelled_window(const FormulaGraph& graph, const onnx::Node& last, const std::string& prefix) {
  if (last.op_type() == "Squeeze") return find_max_pool(graph, last, prefix);
  if (last.op_type() == "ReduceMax") return find_global_max_pool(graph, last, prefix);
  return find_average_pool(graph, last, prefix);
}

}  // namespace arbalest::jobs
