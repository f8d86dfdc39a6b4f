// Sums and products: of two branches, with constants, and the parts of formulas that become one layer.
#include <optional>

#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

using Kind = Formula::Kind;

const Constant* constant_in(const Value& value) {
  const auto* found = std::get_if<std::shared_ptr<const Constant>>(&value);
  return found == nullptr ? nullptr : found->get();
}

const Formula* formula_in(const Value& value, Kind kind) {
  const auto* found = std::get_if<Formula>(&value);
  return found != nullptr && found->kind == kind ? found : nullptr;
}

struct Operands {
  const Value* a;
  const Value* b;
};

Operands operands(GraphImport& graph, NodeReader& node) {
  node.ignore("broadcast");  // of operator sets before 7: what fits is broadcast today
  node.ignore("consumed_inputs");
  if (node.has("axis")) refuse("it aligns its inputs by 'axis', as before operator set 7");
  const Operands both{graph.input(node, 0), graph.input(node, 1)};
  if (both.a == nullptr || both.b == nullptr) refuse("an input is missing");
  return both;
}

// Adds the layer of a complete formula.
void add_function(GraphImport& graph, NodeReader& node, const Formula& formula) {
  ImportedLayer layer{.name = graph.name_for(node)};
  if (formula.kind == Kind::kGeluTimes) layer.message.mutable_gelu();
  if (formula.kind == Kind::kGateTimes) layer.message.mutable_hard_swish();
  Tensor output = graph.layers().add(std::move(layer), {formula.x});
  output.view = formula.x.view;
  output.channels_first = formula.x.channels_first;
  graph.put(node, output);
}

bool takes_bias(const ImportedLayer& layer) {
  const v1::Layer& message = layer.message;
  return (message.has_conv() && layer.weights.size() == 1) || (message.has_dense() && layer.weights.size() == 1) ||
         (message.has_inner_product() && layer.weights.empty());
}

// Makes numbers for each channel the bias of the layer that has computed `x`, if it has none.
bool become_bias(GraphImport& graph, NodeReader& node, const Tensor& x, const Constant& constant,
                 const std::vector<float>& values) {
  if (x.source == kImageSource || !x.is_read_once || !x.channels_first.empty()) return false;
  ImportedLayer layer = graph.layers().at(x.source);
  if (!takes_bias(layer)) return false;
  if (layer.message.has_conv()) layer.message.mutable_conv()->clear_use_bias();
  if (layer.message.has_dense()) layer.message.mutable_dense()->clear_use_bias();
  if (layer.message.has_inner_product()) {
    layer.message.mutable_inner_product()->set_use_bias(true);
    layer.name = graph.name_for(node, constant.name);
  }
  layer.weights.push_back(weight_of("bias", {static_cast<std::int64_t>(values.size())}, values));
  Tensor output = graph.layers().replace(x.source, std::move(layer));
  output.view = x.view;
  graph.put(node, output);
  graph.use_weight(constant);
  return true;
}

// Returns the layer that has computed `x`, a vector, if nothing else reads it and it is a dense layer. Else null.
const ImportedLayer* dense_before(GraphImport& graph, const Tensor& x) {
  if (x.source == kImageSource || !x.is_read_once || x.shape.rank() != 2) return nullptr;
  const ImportedLayer& layer = graph.layers().at(x.source);
  return layer.message.has_dense() ? &layer : nullptr;
}

// Makes the factors part of the weights and the bias of the dense layer that has computed `x`.
bool scale_dense(GraphImport& graph, NodeReader& node, const Tensor& x, const std::vector<float>& factors) {
  const ImportedLayer* before = dense_before(graph, x);
  if (before == nullptr) return false;
  ImportedLayer layer = *before;
  for (dataflow::NamedTensor& tensor : layer.weights) {  // [units, features] and [units]
    const std::size_t columns = tensor.values.size() / factors.size();
    for (std::size_t k = 0; k < tensor.values.size(); ++k) tensor.values[k] *= factors[k / columns];
  }
  graph.put(node, graph.layers().replace(x.source, std::move(layer)));
  return true;
}

// Adds the numbers to the bias of the dense layer, or of the batch norm of a vector, that has computed `x`.
bool shift_features(GraphImport& graph, NodeReader& node, const Tensor& x, const std::vector<float>& values) {
  if (x.source == kImageSource || !x.is_read_once || x.shape.rank() != 2) return false;
  ImportedLayer layer = graph.layers().at(x.source);
  if ((!layer.message.has_dense() && !layer.message.has_batch_norm()) || layer.weights.size() < 2) return false;
  std::vector<float>& bias = layer.weights[1].values;
  for (std::size_t unit = 0; unit < bias.size(); ++unit) bias[unit] += values[unit];
  Tensor output = graph.layers().replace(x.source, std::move(layer));
  output.channels_first = x.channels_first;
  graph.put(node, output);
  return true;
}

// value + sign * constant.
void add_constant(GraphImport& graph, NodeReader& node, const Value& value, const Constant& constant, float sign) {
  if (constant.is_integer) refuse("it adds integers");
  if (const Formula* erf = formula_in(value, Kind::kErf); erf != nullptr && constant.is_single()) {
    if (sign * constant.numbers[0] != 1.0F) refuse("it is not part of GELU");
    return graph.put(node, Formula{.kind = Kind::kErfPlusOne, .x = erf->x, .factor = erf->factor});
  }
  const Tensor x = graph.as_tensor(node, value);
  std::optional<std::vector<float>> values = per_channel(constant, x);
  if (!values) refuse("the constant that it adds must have one value per channel");
  for (float& each : *values) each *= sign;
  if (become_bias(graph, node, x, constant, *values) || shift_features(graph, node, x, *values)) return;
  if (constant.is_single() && sign * constant.numbers[0] == kGateShift) {
    return graph.put(node, Formula{.kind = Kind::kShifted, .x = x});
  }
  const std::size_t channels = values->size();
  graph.put(node,
            add_affine(graph, graph.name_for(node, constant.name), x, std::vector(channels, 1.0F), std::move(*values)));
}

void scale_formula(GraphImport& graph, NodeReader& node, const Formula& formula, float factor) {
  Formula scaled = formula;
  scaled.factor *= factor;
  const bool is_gelu = formula.kind == Kind::kGeluTimes && is_about(scaled.factor, 0.5F);
  const bool is_hard_swish = formula.kind == Kind::kGateTimes && is_about(scaled.factor, 1.0F / 6.0F);
  if (is_gelu || is_hard_swish) return add_function(graph, node, formula);
  const bool is_open = formula.kind == Kind::kScaled || formula.kind == Kind::kGeluTimes ||
                       formula.kind == Kind::kGate || formula.kind == Kind::kGateTimes;
  if (!is_open) refuse("it scales a part of a formula that matches no layer");
  graph.put(node, scaled);
}

// value * constant, or value / constant if `divides`.
void scale_by(GraphImport& graph, NodeReader& node, const Value& value, const Constant& constant, bool divides) {
  if (constant.is_integer) refuse("it scales by integers");
  if (constant.is_single()) {
    const float factor = divides ? 1.0F / constant.numbers[0] : constant.numbers[0];
    if (scale_noise(graph, node, value, factor)) return;
    const auto* formula = std::get_if<Formula>(&value);
    if (formula != nullptr && formula->kind != Kind::kShifted) return scale_formula(graph, node, *formula, factor);
    const Tensor x = graph.as_tensor(node, value);
    if (x.shape.rank() == 2 && scale_dense(graph, node, x, std::vector(static_cast<std::size_t>(x.shape[1]), factor))) {
      return;
    }
    return graph.put(node, Formula{.kind = Kind::kScaled, .x = x, .factor = factor});
  }
  const Tensor x = graph.as_tensor(node, value);
  std::optional<std::vector<float>> values = per_channel(constant, x);
  if (!values) refuse("the constant that it multiplies or divides by must have one value per channel");
  graph.scales_channels = graph.scales_channels || x.source != kImageSource;
  if (divides) {
    for (float& each : *values) each = 1.0F / each;
  }
  if (scale_dense(graph, node, x, *values)) return;
  graph.put(node, add_affine(graph, graph.name_for(node, constant.name), x, std::move(*values), {}));
}

// x * sigmoid(x): the sigmoid's layer becomes that function.
bool become_silu(GraphImport& graph, NodeReader& node, const Tensor& x, const Tensor& gate) {
  if (gate.source == kImageSource || !gate.is_read_once) return false;
  const ImportedLayer& sigmoid = graph.layers().at(gate.source);
  if (!sigmoid.message.has_sigmoid() || sigmoid.sources[0] != x.source) return false;
  if (gate.view != x.view || gate.channels_first != x.channels_first) return false;  // the sigmoid of another order
  ImportedLayer layer{.name = graph.name_for(node)};
  layer.message.mutable_silu();
  Tensor output = graph.layers().replace(gate.source, std::move(layer));
  output.view = x.view;
  output.channels_first = x.channels_first;
  graph.put(node, output);
  return true;
}

void multiply(GraphImport& graph, NodeReader& node, const Tensor& a, const Tensor& b) {
  if (become_silu(graph, node, a, b) || become_silu(graph, node, b, a)) return;
  if (a.rank() != 2 || a.shape != b.shape) refuse("it multiplies two computed images, element by element");
  graph.put(node, Formula{.kind = Kind::kProduct, .x = a, .other = b});
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.source == b.source && a.view == b.view && a.channels_first == b.channels_first;
}

// A tensor times a part of a formula of the same tensor. Returns false if there is no such formula.
bool finish_formula(GraphImport& graph, NodeReader& node, const Value& x, const Value& part) {
  const auto* gate = std::get_if<Formula>(&part);
  if (gate == nullptr || (gate->kind != Kind::kErfPlusOne && gate->kind != Kind::kGate)) return false;
  const Formula* scaled = formula_in(x, Kind::kScaled);
  const Tensor* tensor = scaled != nullptr ? &scaled->x : std::get_if<Tensor>(&x);
  if (tensor == nullptr || !is_same(*tensor, gate->x)) return false;
  const float factor = scaled == nullptr ? 1.0F : scaled->factor;
  if (gate->kind == Kind::kGate) {
    scale_formula(graph, node, {.kind = Kind::kGateTimes, .x = gate->x, .factor = gate->factor}, factor);
  } else {
    scale_formula(graph, node, {.kind = Kind::kGeluTimes, .x = gate->x, .factor = 1.0F}, factor);
  }
  return true;
}

// Add of two inputs, or Sum of any number.
void import_add(GraphImport& graph, NodeReader& node) {
  const int count = node.node().input_size();
  if (count == 2) {
    const Operands both = operands(graph, node);
    if (const Constant* constant = constant_in(*both.b)) return add_constant(graph, node, *both.a, *constant, 1.0F);
    if (const Constant* constant = constant_in(*both.a)) return add_constant(graph, node, *both.b, *constant, 1.0F);
  }
  if (count < 1) refuse("it has no input");
  Tensor sum = graph.tensor(node, 0);
  for (int k = 1; k < count; ++k) {
    const Tensor next = graph.tensor(node, k);
    if (next.view != sum.view || next.channels_first != sum.channels_first) refuse("its inputs differ in their order");
    ImportedLayer layer{.name = graph.name_for(node) + (k + 1 < count ? "/" + std::to_string(k) : "")};
    layer.message.mutable_add();
    const Tensor::View view = sum.view;
    const bool is_positive = sum.is_positive && next.is_positive;
    const std::vector<std::int64_t> channels_first = sum.channels_first;
    sum = graph.layers().add(std::move(layer), {sum, next});
    sum.view = view;
    sum.is_positive = is_positive;
    sum.channels_first = channels_first;
  }
  graph.put(node, sum);
}

void import_sub(GraphImport& graph, NodeReader& node) {
  const Operands both = operands(graph, node);
  const Constant* constant = constant_in(*both.b);
  if (constant == nullptr) refuse("it subtracts a computed value");
  add_constant(graph, node, *both.a, *constant, -1.0F);
}

void import_mul(GraphImport& graph, NodeReader& node) {
  const Operands both = operands(graph, node);
  if (const Constant* constant = constant_in(*both.b)) return scale_by(graph, node, *both.a, *constant, false);
  if (const Constant* constant = constant_in(*both.a)) return scale_by(graph, node, *both.b, *constant, false);
  if (drop_out(graph, node, *both.a, *both.b) || drop_out(graph, node, *both.b, *both.a)) return;
  if (finish_formula(graph, node, *both.a, *both.b) || finish_formula(graph, node, *both.b, *both.a)) return;
  multiply(graph, node, graph.as_tensor(node, *both.a), graph.as_tensor(node, *both.b));
}

void import_div(GraphImport& graph, NodeReader& node) {
  const Operands both = operands(graph, node);
  const Constant* constant = constant_in(*both.b);
  if (constant == nullptr) refuse("it divides by a computed value");
  scale_by(graph, node, *both.a, *constant, true);
}

void import_neg(GraphImport& graph, NodeReader& node) {
  node.ignore("consumed_inputs");
  const Value* value = graph.input(node, 0);
  if (value == nullptr) refuse("its input is missing");
  scale_by(graph, node, *value, {.numbers = {-1.0F}}, false);
}

}  // namespace

const OperatorTable& arithmetic_operators() {
  static const OperatorTable kTable = {{"Add", import_add}, {"Div", import_div}, {"Mul", import_mul},
                                       {"Neg", import_neg}, {"Sub", import_sub}, {"Sum", import_add}};
  return kTable;
}

void write_operator(LayerWriter& layer, const engine::AddSpec& /*spec*/) {
  layer.finish("Add", {layer.input(0), layer.input(1)});
}

}  // namespace arbalest::jobs
