// Dropout: as one node, or as PyTorch's newer exporter spells it out, x * ((uniform < keep) / keep).
#include <algorithm>
#include <cmath>
#include <span>

#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

constexpr float kUsualRatio = 0.5F;

void add_dropout(GraphImport& graph, const NodeReader& node, const Tensor& input, float ratio) {
  ImportedLayer layer{.name = graph.name_for(node)};
  v1::Dropout& dropout = *layer.message.mutable_dropout();
  if (ratio != kUsualRatio) dropout.set_ratio(ratio);
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.channels_first = input.channels_first;
  output.is_positive = input.is_positive;
  graph.put(node, output);
}

// Extents of a value, with kFreeBatch if the number of examples is free.
std::vector<std::int64_t> dims_of(const Value& value) {
  if (const auto* constant = std::get_if<std::shared_ptr<const Constant>>(&value)) return (*constant)->dims;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor->dims();
  if (const auto* noise = std::get_if<Noise>(&value)) return noise->dims;
  refuse("it reads a value whose shape is not known");
}

// Whether each element of `x` has a random number of its own.
bool covers(const GraphImport& graph, const Noise& noise, const Tensor& x) {
  const std::vector<std::int64_t> dims = x.dims();
  if (noise.dims.size() != dims.size() || dims.empty()) return false;
  const std::int64_t batch = noise.dims[0];
  if (batch != kFreeBatch && batch != graph.fixed_batch()) return false;
  return std::ranges::equal(std::span(noise.dims).subspan(1), std::span(dims).subspan(1));
}

// Layers know when they train, so the mode of the file does not count.
void import_dropout(GraphImport& graph, NodeReader& node) {
  for (const char* name : {"seed", "is_test", "consumed_inputs"}) node.ignore(name);
  float ratio = kUsualRatio;
  if (graph.operator_set < 12) {
    ratio = node.number("ratio", kUsualRatio);
  } else if (const Constant* given = graph.optional_numbers(node, 1, "its ratio")) {
    if (!given->is_single()) refuse("its ratio has {} numbers, not one", given->size());
    ratio = given->numbers[0];
  }
  if (ratio == 0.0F) return import_identity(graph, node);
  add_dropout(graph, node, graph.tensor(node, 0), ratio);
}

// A number for each element of a tensor whose number of examples is free, of which only the shape counts.
void import_expand(GraphImport& graph, NodeReader& node) {
  const Constant& number = graph.numbers(node, 0, "its input");
  const Constant& shape = graph.constant(node, 1, "its shape");
  if (!number.is_single() || !shape.is_integer) refuse("it repeats a tensor");
  graph.put(node, Noise{.dims = shape.integers});
}

void import_random_uniform_like(GraphImport& graph, NodeReader& node) {
  const Value* like = graph.input(node, 0);
  if (like == nullptr) refuse("its input is missing");
  if (node.number("low", 0.0F) != 0.0F || node.number("high", 1.0F) != 1.0F) refuse("its numbers are not in [0, 1)");
  node.ignore("seed");
  node.ignore("dtype");
  graph.put(node, Noise{.stage = Noise::Stage::kUniform, .dims = dims_of(*like)});
}

void import_less(GraphImport& graph, NodeReader& node) {
  const Value* value = graph.input(node, 0);
  const auto* noise = value == nullptr ? nullptr : std::get_if<Noise>(value);
  const Constant& limit = graph.numbers(node, 1, "its second input");
  if (noise == nullptr || noise->stage != Noise::Stage::kUniform || !limit.is_single()) {
    refuse("it compares something else than the random numbers of dropout");
  }
  graph.put(node, Noise{.stage = Noise::Stage::kKept, .dims = noise->dims, .keep = limit.numbers[0]});
}

}  // namespace

bool scale_noise(GraphImport& graph, const NodeReader& node, const Value& value, float factor) {
  const auto* noise = std::get_if<Noise>(&value);
  if (noise == nullptr) return false;
  Noise scaled = *noise;
  scaled.factor *= factor;
  graph.put(node, std::move(scaled));
  return true;
}

bool drop_out(GraphImport& graph, const NodeReader& node, const Value& value, const Value& mask) {
  const auto* noise = std::get_if<Noise>(&mask);
  if (noise == nullptr) return false;
  const Tensor x = graph.as_tensor(node, value);
  if (noise->stage != Noise::Stage::kKept || !is_about(noise->factor * noise->keep, 1.0F)) {
    refuse("it multiplies by random numbers, but not as dropout does");
  }
  if (!covers(graph, *noise, x))
    refuse(
        "it drops whole examples or channels; layers here drop single elements; export model.eval(), which leaves it "
        "out");
  add_dropout(graph, node, x, std::round((1.0F - noise->keep) * 1e6F) / 1e6F);  // 0.2, not 0.19999999
  return true;
}

const OperatorTable& dropout_operators() {
  static const OperatorTable kTable = {{"Dropout", import_dropout},
                                       {"Expand", import_expand},
                                       {"Less", import_less},
                                       {"RandomUniformLike", import_random_uniform_like}};
  return kTable;
}

void write_operator(LayerWriter& layer, const engine::DropoutSpec& /*spec*/) { layer.pass_on(); }

}  // namespace arbalest::jobs
