#include "interchange/import/graph/graph_import.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace arbalest::jobs {

namespace {

// "/layer1/layer1.0/conv1/Conv" of PyTorch becomes "layer1.0.conv1".
std::string readable(const std::string& name, const std::string& kind) {
  std::vector<std::string> parts;
  std::string part;
  for (const char letter : name + "/") {
    if (letter != '/') {
      part += letter;
    } else if (!part.empty()) {
      if (!parts.empty() && part.starts_with(parts.back() + ".")) parts.pop_back();
      parts.push_back(std::exchange(part, ""));
    }
  }
  // The last part is the kind, with a number if there are several.
  if (parts.size() > 1 && (parts.back() == kind || parts.back().starts_with(kind + "_"))) parts.pop_back();
  std::string result;
  for (const std::string& each : parts) result += (result.empty() ? "" : ".") + each;
  return result;
}

std::string without_ending(const std::string& name, std::string_view ending) {
  return name.size() > ending.size() && name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : "";
}

}  // namespace

const Value* GraphImport::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

bool GraphImport::has_input(const NodeReader& node, int k) const {
  return k < node.node().input_size() && !node.node().input(k).empty();
}

const Value* GraphImport::input(const NodeReader& node, int k) const {
  if (!has_input(node, k)) return nullptr;
  const Value* found = find(node.node().input(k));
  if (found == nullptr) refuse("it reads '{}', which nothing writes", node.node().input(k));
  if (const auto* unknown = std::get_if<Unknown>(found)) {
    if (unknown->reason.empty()) throw FollowsUnknown();
    refuse("{}", unknown->reason);
  }
  return found;
}

Tensor GraphImport::shifted(const std::string& name, const Tensor& x) {
  const auto channels = static_cast<std::size_t>(x.shape[1]);
  return add_affine(*this, name + ".shift", x, std::vector(channels, 1.0F), std::vector(channels, kGateShift));
}

Tensor GraphImport::as_tensor(const NodeReader& node, const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* unknown = std::get_if<Unknown>(&value)) refuse("{}", unknown->reason);
  if (std::holds_alternative<std::shared_ptr<const Constant>>(value)) refuse("its input is a constant");
  if (std::holds_alternative<Padded>(value))
    refuse("it reads a padded image, but only convolutions and pooling can read one");
  if (std::holds_alternative<IdColumn>(value)) refuse("it reads ids, but only an embedding (Gather) can read them");
  if (std::holds_alternative<Noise>(value)) refuse("it reads random numbers, but only dropout can read them");
  const auto& formula = std::get<Formula>(value);
  const auto channels = static_cast<std::size_t>(formula.x.shape[1]);
  if (formula.kind == Formula::Kind::kScaled) {
    return add_affine(*this, name_for(node) + ".scale", formula.x, std::vector(channels, formula.factor), {});
  }
  if (formula.kind == Formula::Kind::kShifted) {
    return shifted(name_for(node), formula.x);
  }
  if (formula.kind == Formula::Kind::kGate) {
    ImportedLayer relu6{.name = name_for(node) + ".relu6"};
    relu6.message.mutable_relu6();
    const Tensor x = shifted(name_for(node), formula.x);
    Tensor gate = layers_.add(std::move(relu6), {x});
    gate.view = x.view;
    if (formula.factor == 1.0F) return gate;
    return add_affine(*this, name_for(node) + ".scale", gate, std::vector(channels, formula.factor), {});
  }
  refuse("it reads a part of a formula (such as Erf or a product) that matches no layer");
}

Tensor GraphImport::tensor(const NodeReader& node, int k) {
  const Value* value = input(node, k);
  if (value == nullptr) refuse("its input {} is missing", k);
  return as_tensor(node, *value);
}

const Formula* GraphImport::formula(const NodeReader& node, int k, Formula::Kind kind) const {
  const Value* value = input(node, k);
  const auto* found = value == nullptr ? nullptr : std::get_if<Formula>(value);
  return found != nullptr && found->kind == kind ? found : nullptr;
}

Tensor GraphImport::channels_first_tensor(const NodeReader& node, int k) {
  Tensor found = tensor(node, k);
  if (found.view == Tensor::View::kLastChannels) {
    refuse("it reads images in the order [n, h, w, c]; export the model with channels first");
  }
  return found;
}

const Constant* GraphImport::optional_constant(const NodeReader& node, int k, const char* what) const {
  const Value* value = input(node, k);
  if (value == nullptr) return nullptr;
  const auto* constant = std::get_if<std::shared_ptr<const Constant>>(value);
  if (constant == nullptr)
    refuse("{} must be a constant of the file, but '{}' is computed", what, node.node().input(k));
  return constant->get();
}

const Constant& GraphImport::constant(const NodeReader& node, int k, const char* what) const {
  const Constant* found = optional_constant(node, k, what);
  if (found == nullptr) refuse("{} are missing", what);
  return *found;
}

const Constant* GraphImport::optional_numbers(const NodeReader& node, int k, const char* what) const {
  const Constant* found = optional_constant(node, k, what);
  if (found != nullptr && found->is_integer) refuse("{} are integers", what);
  return found;
}

const Constant& GraphImport::numbers(const NodeReader& node, int k, const char* what) const {
  const Constant& found = constant(node, k, what);
  if (found.is_integer) refuse("{} are integers", what);
  return found;
}

void GraphImport::put(const NodeReader& node, Value value) {
  const std::string& name = node.node().output(0);
  if (auto* tensor = std::get_if<Tensor>(&value)) {
    const auto reads = reads_.find(name);
    tensor->is_read_once = tensor->is_read_once && reads != reads_.end() && reads->second == 1;
  }
  define(name, std::move(value));
}

void GraphImport::add(const NodeReader& node, ImportedLayer layer, const std::vector<Tensor>& inputs) {
  put(node, layers_.add(std::move(layer), inputs));
}

std::string GraphImport::name_for(const NodeReader& node, const std::string& weight) const {
  const std::string& name = node.node().name();
  if (keeps_names_ && !name.empty()) return name;
  for (const char* ending : {".weight", ".weight_quantized", ".kernel", ".bias"}) {
    const std::string stem = without_ending(weight, ending);
    if (!stem.empty()) return stem;
  }
  const std::string written = readable(name, node.kind());
  if (!written.empty()) return written;
  const std::string value = readable(node.node().output(0), node.kind());
  return value.empty() ? node.kind() : value;
}

bool GraphImport::has_lost_bias(const Constant& weights) const {
  const std::string layer = without_ending(weights.name, ".weight");
  const std::string bias = layer + ".bias";
  return !layer.empty() && parameters.contains(bias) && find(bias) == nullptr;
}

void GraphImport::count_made(std::size_t elements) {
  check_room(elements);
  made_ += elements;
}

void GraphImport::check_room(std::size_t elements) const {
  if (elements <= most_computed - made_) return;
  refuse("the constants that the file computes have more than {} elements", most_computed);
}

void GraphImport::note(std::string text) {
  constexpr std::size_t kMost = 20;
  if (notes_.size() == kMost) return;
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(std::move(text));
}

void GraphImport::use_weight(const Constant& constant) {
  // Exporters merge constants that are equal, such as the scales of a new batch norm: those were not trained together.
  const auto differ = std::ranges::adjacent_find(constant.numbers, std::not_equal_to<>());
  if (constant.name.empty() || differ == constant.numbers.end() || ++weight_uses_[constant.name] != 2) return;
  note(
      fmt::format("several layers use the weights '{}' together; here each has its own copy, and training changes "
                  "them separately",
                  constant.name));
}

dataflow::NamedTensor weight_of(const char* name, engine::Shape shape, std::vector<float> values) {
  return {name, shape, std::move(values)};
}

std::vector<float> in_our_order(const std::vector<float>& numbers, const Tensor& vector) {
  if (vector.channels_first.empty()) return numbers;
  const auto channels = static_cast<std::size_t>(vector.channels_first[0]);
  const std::size_t pixels = numbers.size() / channels;
  std::vector<float> ours(numbers.size());
  for (std::size_t f = 0; f < ours.size(); ++f) ours[f] = numbers[f % pixels * channels + f / pixels];
  return ours;
}

std::optional<std::vector<float>> per_channel(const Constant& constant, const Tensor& tensor) {
  if (constant.is_integer) return std::nullopt;
  const auto channels = static_cast<std::size_t>(tensor.shape[1]);
  if (constant.is_single()) return std::vector(channels, constant.numbers[0]);
  const auto rank = static_cast<std::size_t>(tensor.rank());
  if (constant.dims.size() > rank || constant.size() != channels) return std::nullopt;
  // Dimensions are aligned at the end.
  const std::size_t missing = rank - constant.dims.size();
  for (std::size_t axis = 0; axis < constant.dims.size(); ++axis) {
    const bool is_channels = axis + missing == static_cast<std::size_t>(tensor.channel_axis());
    if (constant.dims[axis] != (is_channels ? tensor.shape[1] : 1)) return std::nullopt;
  }
  return in_our_order(constant.numbers, tensor);
}

namespace {

// With the variance 1 - epsilon, batch norm divides by 1.
Tensor add_affine_features(GraphImport& graph, const std::string& name, const Tensor& x, std::vector<float> scale,
                           std::vector<float> shift) {
  if (x.source == kImageSource) refuse("it scales ids");
  constexpr float kEpsilon = 1e-5F;
  const std::int64_t features = x.shape[1];
  const auto count = static_cast<std::size_t>(features);
  if (shift.empty()) shift.resize(count, 0.0F);
  ImportedLayer layer{.name = name};
  layer.message.mutable_batch_norm();
  layer.weights.push_back(weight_of("weight", {features}, std::move(scale)));
  layer.weights.push_back(weight_of("bias", {features}, std::move(shift)));
  layer.weights.push_back(weight_of("running_mean", {features}, std::vector(count, 0.0F)));
  layer.weights.push_back(weight_of("running_var", {features}, std::vector(count, 1.0F - kEpsilon)));
  graph.note(
      "features that the file scales by constants are scaled by batch norm here, with the mean 0 and the variance 1; "
      "training normalizes them by their own mean and variance");
  Tensor result = graph.layers().add(std::move(layer), {x});
  result.channels_first = x.channels_first;
  return result;
}

}  // namespace

Tensor add_affine(GraphImport& graph, const std::string& name, const Tensor& x, std::vector<float> scale,
                  std::vector<float> shift) {
  if (x.shape.rank() != 4) return add_affine_features(graph, name, x, std::move(scale), std::move(shift));
  const std::int64_t channels = x.shape[1];
  ImportedLayer layer{.name = name};
  v1::Conv& conv = *layer.message.mutable_conv();
  conv.set_filters(static_cast<int>(channels));
  conv.set_kernel(1);
  conv.set_groups(static_cast<int>(channels));
  layer.weights.push_back(weight_of("weight", {channels, 1, 1, 1}, std::move(scale)));
  if (shift.empty()) {
    conv.set_use_bias(false);
  } else {
    layer.weights.push_back(weight_of("bias", {channels}, std::move(shift)));
  }
  Tensor result = graph.layers().add(std::move(layer), {x});
  result.view = x.view;
  return result;
}

}  // namespace arbalest::jobs
