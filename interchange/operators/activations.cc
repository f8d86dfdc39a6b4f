#include <array>
#include <cstdint>
#include <numbers>

#include <fmt/format.h>

#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

constexpr float kLimit = 6.0F;  // of ReLU6

// Adds a layer that keeps the order of the elements.
void add_elementwise(GraphImport& graph, NodeReader& node, const Tensor& input, ImportedLayer layer, bool is_positive) {
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.channels_first = input.channels_first;
  output.is_positive = is_positive;
  graph.put(node, output);
}

ImportedLayer named(const GraphImport& graph, const NodeReader& node) { return {.name = graph.name_for(node)}; }

// Bound of a Clip: an attribute up to operator set 10, then an input.
std::optional<float> bound(GraphImport& graph, NodeReader& node, const char* name, int k) {
  if (graph.operator_set < 11) {
    if (!node.has(name)) return std::nullopt;
    return node.number(name, 0.0F);
  }
  const Constant* constant = graph.optional_constant(node, k, "its bound");
  if (constant == nullptr) return std::nullopt;
  if (!constant->is_single()) refuse("its bound is not one number");
  return static_cast<float>(constant->single());
}

void import_activation(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.tensor(node, 0);
  ImportedLayer layer = named(graph, node);
  const std::string& kind = node.kind();
  if (kind == "Relu") layer.message.mutable_relu();
  if (kind == "Tanh") layer.message.mutable_tanh();
  if (kind == "Sigmoid") layer.message.mutable_sigmoid();
  if (kind == "HardSwish") layer.message.mutable_hard_swish();
  node.ignore("consumed_inputs");
  add_elementwise(graph, node, input, std::move(layer), kind == "Relu" || kind == "Sigmoid");
}

void import_clip(GraphImport& graph, NodeReader& node) {
  const std::optional<float> low = bound(graph, node, "min", 1);
  const std::optional<float> high = bound(graph, node, "max", 2);
  node.ignore("consumed_inputs");
  if (low.value_or(0.0F) != 0.0F || !low) refuse("it limits numbers to other bounds than [0, 6] (ReLU6)");
  if (const Formula* shifted = graph.formula(node, 0, Formula::Kind::kShifted); shifted != nullptr && high == kLimit) {
    return graph.put(node, Formula{.kind = Formula::Kind::kGate, .x = shifted->x});
  }
  ImportedLayer layer = named(graph, node);
  if (high == kLimit) {
    layer.message.mutable_relu6();
  } else if (!high || *high >= std::numeric_limits<float>::max()) {
    layer.message.mutable_relu();
  } else {
    refuse("it limits numbers to [0, {}]; only [0, 6] (ReLU6) can be imported", *high);
  }
  add_elementwise(graph, node, graph.tensor(node, 0), std::move(layer), true);
}

// min(max(alpha x + beta, 0), 1)
void import_hard_sigmoid(GraphImport& graph, NodeReader& node) {
  const float alpha = node.number("alpha", 0.2F);
  const float beta = node.number("beta", 0.5F);
  node.ignore("consumed_inputs");
  if (!is_about(alpha, 1.0F / kLimit) || !is_about(beta, 0.5F)) {
    refuse("its alpha is {} and its beta {}; only 1/6 and 1/2, as in hard swish, can be imported", alpha, beta);
  }
  graph.put(node, Formula{.kind = Formula::Kind::kGate, .x = graph.tensor(node, 0), .factor = alpha});
}

void import_leaky_relu(GraphImport& graph, NodeReader& node) {
  ImportedLayer layer = named(graph, node);
  const float slope = node.number("alpha", 0.01F);
  layer.message.mutable_leaky_relu();
  if (slope != 0.01F) layer.message.mutable_leaky_relu()->set_slope(slope);
  node.ignore("consumed_inputs");
  add_elementwise(graph, node, graph.tensor(node, 0), std::move(layer), false);
}

void import_prelu(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.tensor(node, 0);
  if (input.shape.rank() < 2) refuse("it reads one number per example");
  const Constant& slopes = graph.numbers(node, 1, "its slopes");
  std::optional<std::vector<float>> weight = per_channel(slopes, input);
  // Up to operator set 6 slopes [c] are those of the channels. From 7 on they would be aligned with the columns.
  constexpr std::int64_t kAlignsSince = 7;
  const bool are_of_channels = graph.operator_set < kAlignsSince && slopes.dims == std::vector{input.shape[1]};
  if (!weight && !slopes.is_integer && are_of_channels) weight = in_our_order(slopes.numbers, input);
  if (!weight) refuse("it must have one slope, or one for each channel");
  ImportedLayer layer{.name = graph.name_for(node, slopes.name)};
  if (slopes.is_single() && weight->size() > 1) {
    graph.note(
        fmt::format("layer '{}' has one slope for all channels; here each channel has its own, and training "
                    "changes them separately",
                    layer.name));
  }
  layer.message.mutable_prelu();
  layer.weights.push_back(weight_of("weight", {input.shape[1]}, std::move(*weight)));
  graph.use_weight(slopes);
  node.ignore("consumed_inputs");
  add_elementwise(graph, node, input, std::move(layer), false);
}

void import_gelu(GraphImport& graph, NodeReader& node) {
  const std::string approximation = node.text("approximate", "none");
  if (approximation != "none") refuse("it is the approximation by '{}'; ours is exact", approximation);
  ImportedLayer layer = named(graph, node);
  layer.message.mutable_gelu();
  add_elementwise(graph, node, graph.tensor(node, 0), std::move(layer), false);
}

void import_erf(GraphImport& graph, NodeReader& node) {
  const Formula* formula = graph.formula(node, 0, Formula::Kind::kScaled);
  if (formula == nullptr || !is_about(formula->factor, std::numbers::sqrt2_v<float> / 2.0F)) {
    refuse("it is not part of GELU, x (1 + erf(x / sqrt 2)) / 2");
  }
  graph.put(node, Formula{.kind = Formula::Kind::kErf, .x = formula->x, .factor = formula->factor});
}

// x (1 + erf(x / sqrt 2)) / 2; the operator Gelu exists from operator set 20 on.
void write_gelu(LayerWriter& layer) {
  const std::string scaled =
      layer.step("Div", "div", {layer.input(), layer.file().number(std::numbers::sqrt2_v<float>)}).output(0);
  const std::string erf = layer.step("Erf", "erf", {scaled}).output(0);
  const std::string sum = layer.step("Add", "add", {erf, layer.file().number(1.0F)}).output(0);
  const std::string product = layer.step("Mul", "mul", {layer.input(), sum}).output(0);
  layer.finish("Mul", {product, layer.file().number(0.5F)});
}

// x hard_sigmoid(x); the operator HardSwish exists from operator set 14 on.
void write_hard_swish(LayerWriter& layer) {
  onnx::Node& gate = layer.step("HardSigmoid", "hard_sigmoid", {layer.input()});
  set_attribute(gate, "alpha", 1.0F / 6.0F);
  set_attribute(gate, "beta", 0.5F);
  layer.finish("Mul", {layer.input(), gate.output(0)});
}

}  // namespace

const OperatorTable& activation_operators() {
  static const OperatorTable kTable = {{"Clip", import_clip},
                                       {"Erf", import_erf},
                                       {"Gelu", import_gelu},
                                       {"HardSigmoid", import_hard_sigmoid},
                                       {"HardSwish", import_activation},
                                       {"LeakyRelu", import_leaky_relu},
                                       {"PRelu", import_prelu},
                                       {"Relu", import_activation},
                                       {"Sigmoid", import_activation},
                                       {"Tanh", import_activation}};
  return kTable;
}

void write_operator(LayerWriter& layer, const engine::ActivationSpec& spec) {
  using Kind = engine::ActivationKind;
  switch (spec.function.kind) {
    case Kind::kRelu: layer.finish("Relu", {layer.input()}); break;
    case Kind::kTanh: layer.finish("Tanh", {layer.input()}); break;
    case Kind::kSigmoid: layer.finish("Sigmoid", {layer.input()}); break;
    case Kind::kLeakyRelu:
      set_attribute(layer.finish("LeakyRelu", {layer.input()}), "alpha", spec.function.slope);
      break;
    case Kind::kRelu6:
      layer.finish("Clip", {layer.input(), layer.file().number(0.0F), layer.file().number(engine::kRelu6Limit)});
      break;
    case Kind::kSilu:
      layer.finish("Mul", {layer.input(), layer.step("Sigmoid", "sigmoid", {layer.input()}).output(0)});
      break;
    case Kind::kGelu: write_gelu(layer); break;
    case Kind::kHardSwish: write_hard_swish(layer); break;
  }
}

// Behind the channels, the slopes need an axis for each axis of the pixels.
void write_operator(LayerWriter& layer, const engine::PReluSpec& spec) {
  std::string slopes = layer.parameter(0);
  if (spec.input.shape().rank() == 4) {
    constexpr std::array<std::int64_t, 2> kAxes{1, 2};
    slopes = layer.step("Unsqueeze", "slopes", {slopes, layer.file().add_integers(layer.part_name("axes"), kAxes)})
                 .output(0);
  }
  layer.finish("PRelu", {layer.input(), slopes});
}

}  // namespace arbalest::jobs
