// The normalizations: their import from ONNX and their export.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "interchange/export/layer_writer.h"
#include "interchange/import/formulas/formulas.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kPlainScale = "scale";  // part of a layer norm without parameters

// ONNX's momentum is the weight of the old statistics. The shortest number that gives it is taken: for 0.9 it is 0.1,
// although float32's 1 - 0.9 differs a little.
float our_momentum(float theirs) {
  const float exact = 1.0F - theirs;
  const float rounded = std::round(exact * 1e6F) / 1e6F;
  return 1.0F - rounded == theirs ? rounded : exact;
}

dataflow::NamedTensor channels(const char* name, const Constant& constant, const Tensor& input) {
  const bool fits = constant.size() == static_cast<std::size_t>(input.shape[1]);
  return weight_of(name, {static_cast<std::int64_t>(constant.size())},
                   fits ? in_our_order(constant.numbers, input) : constant.numbers);
}

void import_batch_norm(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.channels_first_tensor(node, 0);
  const Constant& scale = graph.numbers(node, 1, "its scale");
  ImportedLayer layer{.name = graph.name_for(node, scale.name)};
  v1::BatchNorm& norm = *layer.message.mutable_batch_norm();
  const float epsilon = node.number("epsilon", 1e-5F);
  if (epsilon != 1e-5F) norm.set_epsilon(epsilon);
  const float momentum = our_momentum(node.number("momentum", 0.9F));
  if (momentum <= 0.0F || momentum > 1.0F) {
    graph.note(
        fmt::format("layer '{}' never updates its running statistics (momentum {}); here they are updated with "
                    "the usual momentum, 0.1",
                    layer.name, 1.0F - momentum));
  } else if (momentum != 0.1F) {
    norm.set_momentum(momentum);
  }
  node.require("spatial", 1);
  node.ignore("training_mode");  // layers of ours know when they train
  node.ignore("is_test");
  node.ignore("consumed_inputs");
  layer.weights.push_back(channels("weight", scale, input));
  layer.weights.push_back(channels("bias", graph.numbers(node, 2, "its bias"), input));
  layer.weights.push_back(channels("running_mean", graph.numbers(node, 3, "its running mean"), input));
  layer.weights.push_back(channels("running_var", graph.numbers(node, 4, "its running variance"), input));
  graph.use_weight(scale);
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.channels_first = input.channels_first;
  graph.put(node, output);
}

std::string text_of(const std::vector<std::int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

// The dimensions of an example in the file.
std::vector<std::int64_t> example_dims(const Tensor& tensor) {
  const std::vector<std::int64_t> dims = tensor.dims();
  return {dims.begin() + 1, dims.end()};
}

// Numbers for each feature of an example, in our order.
dataflow::NamedTensor features(const char* name, const char* what, const Constant& constant, const Tensor& input) {
  if (constant.dims != example_dims(input)) {
    refuse("{} has the shape {}, and here it must have that of an example, {}; expand it before the export", what,
           text_of(constant.dims), text_of(example_dims(input)));
  }
  return weight_of(name, engine::example_shape(input.shape), in_our_order(constant.numbers, input));
}

void import_layer_norm(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.channels_first_tensor(node, 0);
  const std::int64_t axis = node.integer("axis", -1);
  if (axis != 1 && axis != 1 - input.rank()) {
    refuse(
        "it normalizes the axes from {} on, and layer_norm all axes of an example; give it the axis 1 (in PyTorch a "
        "normalized_shape of {})",
        axis, text_of(example_dims(input)));
  }
  node.ignore("stash_type");  // the type of the statistics, which are float32 here
  const Constant& scale = graph.numbers(node, 1, "its scale");
  const Constant* shift = graph.optional_numbers(node, 2, "its bias");
  const std::string name = graph.name_for(node);
  // A scale is always there. Our own export makes one of ones if there are no parameters.
  const bool is_plain = shift == nullptr && std::ranges::all_of(scale.numbers, [](float x) { return x == 1.0F; }) &&
                        graph.is_step_of(scale.name, name, kPlainScale);
  ImportedLayer layer{.name = is_plain ? name : graph.name_for(node, scale.name)};
  v1::LayerNorm& norm = *layer.message.mutable_layer_norm();
  const float epsilon = node.number("epsilon", 1e-5F);
  if (epsilon != 1e-5F) norm.set_epsilon(epsilon);
  dataflow::NamedTensor weight = features("weight", "its scale", scale, input);
  if (is_plain) {
    norm.set_affine(false);
  } else {
    const Constant zeros{.dims = scale.dims, .numbers = std::vector(scale.numbers.size(), 0.0F)};
    layer.weights = {std::move(weight), features("bias", "its bias", shift == nullptr ? zeros : *shift, input)};
    graph.use_weight(scale);
  }
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.channels_first = input.channels_first;
  graph.put(node, output);
}

void import_lrn(GraphImport& graph, NodeReader& node) {
  const Tensor input = graph.channels_first_tensor(node, 0);
  ImportedLayer layer{.name = graph.name_for(node)};
  v1::LocalResponseNorm& norm = *layer.message.mutable_local_response_norm();
  norm.set_size(static_cast<int>(std::min<std::int64_t>(node.integer("size", 0), 1 << 20)));
  norm.set_alpha(node.number("alpha", 1e-4F));
  norm.set_beta(node.number("beta", 0.75F));
  norm.set_k(node.number("bias", 1.0F));
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  graph.put(node, output);
}

void import_softmax(GraphImport& graph, NodeReader& node) {
  Tensor input = graph.channels_first_tensor(node, 0);
  const std::int64_t axis = node.integer("axis", graph.operator_set < 13 ? 1 : -1);
  if (input.view == Tensor::View::kVector) {
    ImportedLayer flatten{.name = graph.name_for(node) + "/flatten"};
    flatten.message.mutable_flatten();
    input = graph.layers().add(std::move(flatten), {input});
  }
  if (input.rank() != 2 || input.shape.rank() != 2 || (axis != 1 && axis != -1)) {
    refuse("it normalizes something else than a vector of features");
  }
  if (!input.channels_first.empty())
    refuse("it reads flattened images whose elements are in another order than in Arbalest");
  ImportedLayer layer{.name = graph.name_for(node)};
  layer.message.mutable_softmax();
  graph.add(node, std::move(layer), {input});
}

}  // namespace

const OperatorTable& normalization_operators() {
  static const OperatorTable kTable = {{"BatchNormalization", import_batch_norm},
                                       {"LRN", import_lrn},
                                       {"LayerNormalization", import_layer_norm},
                                       {"Softmax", import_softmax},
                                       {kSpelledNorm, import_spelled_norm}};
  return kTable;
}

// ONNX's momentum is the weight of the old statistics.
void write_operator(LayerWriter& layer, const engine::BatchNormSpec& spec) {
  onnx::Node& node = layer.finish("BatchNormalization", layer.operands({layer.input()}));
  set_attribute(node, "epsilon", spec.epsilon);
  set_attribute(node, "momentum", 1.0F - layer.of().parameters.back().statistic_momentum);
}

void write_operator(LayerWriter& layer, const engine::LayerNormSpec& spec) {
  layer.file().need_operator_set(17);
  std::vector<std::string> operands = layer.operands({layer.input()});
  if (!spec.affine) {
    const engine::Shape shape = engine::example_shape(spec.input.shape());
    const std::vector<float> ones(static_cast<std::size_t>(shape.elements()), 1.0F);
    operands.push_back(layer.file().add_tensor({layer.part_name(kPlainScale), shape, ones}));
  }
  onnx::Node& node = layer.finish("LayerNormalization", operands);
  set_attribute(node, "axis", std::int64_t{1});
  set_attribute(node, "epsilon", spec.epsilon);
}

void write_operator(LayerWriter& layer, const engine::LocalResponseNormSpec& spec) {
  onnx::Node& node = layer.finish("LRN", {layer.input()});
  set_attribute(node, "alpha", spec.alpha);
  set_attribute(node, "beta", spec.beta);
  set_attribute(node, "bias", spec.k);
  set_attribute(node, "size", spec.size);
}

void write_operator(LayerWriter& layer, const engine::SoftmaxSpec& /*spec*/) {
  set_attribute(layer.finish("Softmax", {layer.input()}), "axis", std::int64_t{-1});
}

}  // namespace arbalest::jobs
