#include "interchange/export/onnx_layers.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <variant>

#include "engine/base/error.h"
#include "engine/operator.h"

namespace arbalest::jobs {

namespace {

using Names = std::vector<std::string>;

// Adds the nodes of one layer. The last node has the layer's name and writes its output; the others have names behind
// the layer's name and a slash.
class LayerWriter {
 public:
  LayerWriter(OnnxLayer layer, OnnxWriter& writer) : layer_(std::move(layer)), writer_(writer) {}

  std::string write() {
    for (dataflow::NamedTensor& tensor : layer_.weights) parameters_.push_back(writer_.add_tensor(std::move(tensor)));
    std::vector<engine::Layout> layouts;
    for (const engine::Shape& shape : layer_.inputs) layouts.emplace_back(shape, engine::DType::kFloat32, 0, nullptr);
    return std::visit([this](const auto& spec) { return put(spec); }, layer_.node.layer->operator_spec(layouts, 0));
  }

 private:
  const std::string& input(std::size_t k = 0) const { return layer_.values[k]; }

  // Inputs and then the parameters.
  Names operands(Names values) const {
    values.insert(values.end(), parameters_.begin(), parameters_.end());
    return values;
  }

  // Adds the layer's last node.
  onnx::Node& finish(std::string_view kind, const Names& inputs) {
    if (layer_.output.empty()) layer_.output = writer_.new_value(layer_.node.name);
    return writer_.add(kind, layer_.node.name, inputs, layer_.output);
  }
  // Adds a node before the last and returns it; its output is its only one.
  onnx::Node& step(std::string_view kind, const char* part, const Names& inputs) {
    const std::string name = part_name(part);
    return writer_.add(kind, writer_.new_node(name), inputs, writer_.new_value(name));
  }
  std::string part_name(const char* part) const { return layer_.node.name + "/" + part; }

  // A layer that does nothing has no node, unless its output must have a name of its own.
  std::string pass_on() {
    if (!layer_.output.empty()) finish("Identity", {input()});
    return layer_.output.empty() ? input() : layer_.output;
  }

  static void set_window(onnx::Node& node, const engine::Window& window) {
    const engine::Extent2d after = engine::padding_after(window);
    set_attribute(node, "kernel_shape", std::array{window.kernel.height, window.kernel.width});
    set_attribute(node, "pads", std::array{window.padding.height, window.padding.width, after.height, after.width});
    set_attribute(node, "strides", std::array{window.stride.height, window.stride.width});
  }

  std::string put(const engine::Conv2dSpec& spec) {
    onnx::Node& node = finish("Conv", operands({input()}));
    set_attribute(node, "dilations", std::array{spec.window.dilation.height, spec.window.dilation.width});
    set_attribute(node, "group", spec.groups);
    set_window(node, spec.window);
    return layer_.output;
  }

  std::string put(const engine::DenseSpec& spec) {
    std::string features = input();
    if (spec.input.shape().rank() != 2) {
      onnx::Node& flatten = step("Flatten", "flatten", {features});
      set_attribute(flatten, "axis", std::int64_t{1});
      features = flatten.output(0);
    }
    set_attribute(finish("Gemm", operands({features})), "transB", std::int64_t{1});
    return layer_.output;
  }

  std::string put(const engine::Pool2dSpec& spec) {
    if (layer_.node.layer->kind() == "global_average_pool") {
      finish("GlobalAveragePool", {input()});
      return layer_.output;
    }
    const bool averages = spec.kind == engine::PoolKind::kAverage;
    onnx::Node& node = finish(averages ? "AveragePool" : "MaxPool", {input()});
    if (averages) set_attribute(node, "count_include_pad", std::int64_t{spec.count_padding});
    set_window(node, spec.window);
    return layer_.output;
  }

  std::string put(const engine::ActivationSpec& spec) {
    using Kind = engine::ActivationKind;
    switch (spec.function.kind) {
      case Kind::kRelu: finish("Relu", {input()}); break;
      case Kind::kTanh: finish("Tanh", {input()}); break;
      case Kind::kSigmoid: finish("Sigmoid", {input()}); break;
      case Kind::kLeakyRelu: set_attribute(finish("LeakyRelu", {input()}), "alpha", spec.function.slope); break;
      case Kind::kRelu6: finish("Clip", {input(), writer_.number(0.0F), writer_.number(engine::kRelu6Limit)}); break;
      case Kind::kSilu: finish("Mul", {input(), step("Sigmoid", "sigmoid", {input()}).output(0)}); break;
      case Kind::kGelu: put_gelu(); break;
      case Kind::kHardSwish: put_hard_swish(); break;
    }
    return layer_.output;
  }

  // x (1 + erf(x / sqrt 2)) / 2; the operator Gelu exists from operator set 20 on.
  void put_gelu() {
    const std::string scaled = step("Div", "div", {input(), writer_.number(std::numbers::sqrt2_v<float>)}).output(0);
    const std::string erf = step("Erf", "erf", {scaled}).output(0);
    const std::string sum = step("Add", "add", {erf, writer_.number(1.0F)}).output(0);
    const std::string product = step("Mul", "mul", {input(), sum}).output(0);
    finish("Mul", {product, writer_.number(0.5F)});
  }

  // x hard_sigmoid(x); the operator HardSwish exists from operator set 14 on.
  void put_hard_swish() {
    onnx::Node& gate = step("HardSigmoid", "hard_sigmoid", {input()});
    set_attribute(gate, "alpha", 1.0F / 6.0F);
    set_attribute(gate, "beta", 0.5F);
    finish("Mul", {input(), gate.output(0)});
  }

  std::string put(const engine::DropoutSpec& /*spec*/) { return pass_on(); }

  std::string put(const engine::FlattenSpec& /*spec*/) {
    set_attribute(finish("Flatten", {input()}), "axis", std::int64_t{1});
    return layer_.output;
  }

  // ONNX's momentum is the weight of the old statistics.
  std::string put(const engine::BatchNormSpec& spec) {
    onnx::Node& node = finish("BatchNormalization", operands({input()}));
    set_attribute(node, "epsilon", spec.epsilon);
    set_attribute(node, "momentum", 1.0F - layer_.parameters.back().statistic_momentum);
    return layer_.output;
  }

  std::string put(const engine::LocalResponseNormSpec& spec) {
    onnx::Node& node = finish("LRN", {input()});
    set_attribute(node, "alpha", spec.alpha);
    set_attribute(node, "beta", spec.beta);
    set_attribute(node, "bias", spec.k);
    set_attribute(node, "size", spec.size);
    return layer_.output;
  }

  std::string put(const engine::AddSpec& /*spec*/) {
    finish("Add", {input(0), input(1)});
    return layer_.output;
  }

  std::string put(const engine::ConcatSpec& /*spec*/) {
    set_attribute(finish("Concat", layer_.values), "axis", std::int64_t{1});
    return layer_.output;
  }

  // Every stride-th pixel is a maximum over one pixel. Then channels of zeros are added around.
  std::string put(const engine::PaddedShortcutSpec& spec) {
    const std::int64_t added = spec.channels - spec.input.shape()[1];
    if (added == 0 && spec.stride == 1) return pass_on();
    std::string pixels = input();
    if (spec.stride > 1) {
      onnx::Node& pool = added == 0 ? finish("MaxPool", {pixels}) : step("MaxPool", "subsample", {pixels});
      set_window(pool, {.kernel = {1, 1}, .stride = {spec.stride, spec.stride}});
      pixels = pool.output(0);
    }
    if (added == 0) return layer_.output;
    const std::array<std::int64_t, 8> pads{0, added / 2, 0, 0, 0, added - added / 2, 0, 0};
    finish("Pad", {pixels, writer_.add_integers(part_name("pads"), pads)});
    return layer_.output;
  }

  std::string put(const engine::SoftmaxSpec& /*spec*/) {
    set_attribute(finish("Softmax", {input()}), "axis", std::int64_t{-1});
    return layer_.output;
  }

  std::string put(const engine::EmbeddingSpec& spec) {
    onnx::Node& ids = step("Gather", "ids", {input(), writer_.add_integer(part_name("column"), spec.column)});
    set_attribute(ids, "axis", std::int64_t{1});
    set_attribute(finish("Gather", {parameters_.front(), ids.output(0)}), "axis", std::int64_t{0});
    return layer_.output;
  }

  std::string put(const engine::InnerProductSpec& spec) {
    const std::string product = step("Mul", "mul", {input(0), input(1)}).output(0);
    const std::array<std::int64_t, 1> axis{1};
    const Names sum{product, writer_.add_integers(part_name("axis"), axis)};
    if (spec.bias) {
      finish("Add", {step("ReduceSum", "sum", sum).output(0), parameters_.front()});
    } else {
      finish("ReduceSum", sum);
    }
    return layer_.output;
  }

  // Losses and metrics are not part of a model at inference.
  std::string put(const engine::SoftmaxCrossEntropySpec& /*spec*/) { return refuse(); }
  std::string put(const engine::AccuracySpec& /*spec*/) { return refuse(); }
  std::string put(const engine::SquaredErrorSpec& /*spec*/) { return refuse(); }
  // Files hold whole layers, between which nothing is exchanged.
  std::string put(const engine::ExchangeSpec& /*spec*/) { return refuse(); }

  [[noreturn]] std::string refuse() const {
    engine::fail(engine::ErrorKind::kInternal, "layer '{}' has no output to export", layer_.node.name);
  }

  OnnxLayer layer_;
  OnnxWriter& writer_;
  Names parameters_;  // names in the file
};

}  // namespace

std::string write_layer(OnnxLayer layer, OnnxWriter& writer) { return LayerWriter(std::move(layer), writer).write(); }

}  // namespace arbalest::jobs
