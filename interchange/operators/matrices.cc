#include <algorithm>
#include <array>

#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

// A vector of features: [n, f] in the file.
Tensor features(GraphImport& graph, const NodeReader& node) {
  Tensor input = graph.channels_first_tensor(node, 0);
  if (input.rank() != 2) refuse("its input has {} dimensions; a dense layer reads [n, features]", input.rank());
  return input;
}

// Weights [units, features] of a matrix in either order; features in the order of ours.
std::vector<float> weights_of(const Constant& matrix, bool is_transposed, const Tensor& input, float factor) {
  const auto rows = static_cast<std::size_t>(matrix.dims[0]);
  const auto columns = static_cast<std::size_t>(matrix.dims[1]);
  const std::size_t units = is_transposed ? rows : columns;
  const std::size_t count = is_transposed ? columns : rows;
  std::vector<std::size_t> source(count);  // by feature of ours, the file's
  for (std::size_t f = 0; f < count; ++f) source[f] = f;
  if (const auto& order = input.channels_first; !order.empty()) {
    const auto channels = static_cast<std::size_t>(order[0]);
    const std::size_t pixels = count / channels;
    for (std::size_t f = 0; f < count; ++f) source[f] = f % pixels * channels + f / pixels;
  }
  std::vector<float> weights(matrix.numbers.size());
  for (std::size_t u = 0; u < units; ++u) {
    for (std::size_t f = 0; f < count; ++f) {
      const std::size_t from = is_transposed ? u * columns + source[f] : source[f] * columns + u;
      weights[u * count + f] = matrix.numbers[from] * factor;
    }
  }
  return weights;
}

// A flatten that was made for this layer only is not needed: dense layers flatten their input themselves.
Tensor without_flatten(GraphImport& graph, const Tensor& input, const std::string& name) {
  if (input.source == kImageSource || !input.is_read_once) return input;
  ImportedLayer& layer = graph.layers().at(input.source);
  if (!layer.message.has_flatten() || layer.name != name + "/flatten") return input;
  layer.is_dropped = true;
  return {.source = layer.sources[0], .shape = graph.layers().shape_of(layer.sources[0])};
}

void add_dense(GraphImport& graph, NodeReader& node, const Constant& matrix, bool is_transposed, float factor,
               std::vector<float> bias) {
  const Tensor input = features(graph, node);
  if (matrix.dims.size() != 2) refuse("its weights are no matrix of numbers");
  const std::int64_t units = matrix.dims[is_transposed ? 0 : 1];
  const std::int64_t count = matrix.dims[is_transposed ? 1 : 0];
  if (count != input.shape.elements()) {
    refuse("its weights are for {} features, but it reads {}", count, input.shape.elements());
  }
  ImportedLayer layer{.name = graph.name_for(node, matrix.name)};
  v1::Dense& dense = *layer.message.mutable_dense();
  dense.set_units(static_cast<int>(units));
  layer.weights.push_back(weight_of("weight", {units, count}, weights_of(matrix, is_transposed, input, factor)));
  if (bias.empty()) {
    dense.set_use_bias(false);
  } else {
    layer.weights.push_back(weight_of("bias", {units}, std::move(bias)));
  }
  const Tensor read = without_flatten(graph, input, layer.name);
  graph.add(node, std::move(layer), {read});
  graph.use_weight(matrix);
}

void import_gemm(GraphImport& graph, NodeReader& node) {
  const Constant& matrix = graph.numbers(node, 1, "its weights");
  node.require("transA", 0);
  node.ignore("broadcast");  // of operator sets before 7; what fits is broadcast today
  const bool is_transposed = node.integer("transB", 0) != 0;
  const float alpha = node.number("alpha", 1.0F);
  const float beta = node.number("beta", 1.0F);
  std::vector<float> bias;
  if (const Constant* given = graph.optional_numbers(node, 2, "its bias")) {
    if (matrix.dims.size() != 2) refuse("its weights are no matrix of numbers");
    const auto units = static_cast<std::size_t>(matrix.dims[is_transposed ? 0 : 1]);
    bias = given->is_single() ? std::vector(units, given->numbers.at(0)) : given->numbers;
    const bool is_row = given->dims.size() <= 1 || (given->dims.size() == 2 && given->dims[0] == 1);
    if (bias.size() != units || !is_row) refuse("its bias has {} numbers for {} units", given->size(), units);
    for (float& value : bias) value *= beta;
  } else if (matrix.dims.size() == 2 && graph.has_lost_bias(matrix)) {
    bias.resize(static_cast<std::size_t>(matrix.dims[is_transposed ? 0 : 1]), 0.0F);
  }
  add_dense(graph, node, matrix, is_transposed, alpha, std::move(bias));
}

void import_matmul(GraphImport& graph, NodeReader& node) {
  const Constant& matrix = graph.numbers(node, 1, "its second factor");
  add_dense(graph, node, matrix, false, 1.0F, {});
}

// A column of the model's ids, or rows of a table by that column.
void import_gather(GraphImport& graph, NodeReader& node) {
  const std::int64_t axis = node.integer("axis", 0);
  const Value* from = graph.input(node, 0);
  const Value* index = graph.input(node, 1);
  if (from == nullptr || index == nullptr) refuse("an input is missing");
  if (const auto* tensor = std::get_if<Tensor>(from)) {
    const Constant& column = graph.constant(node, 1, "its column");
    if (tensor->source != kImageSource || tensor->shape.rank() != 2 || axis != 1 || !column.is_single() ||
        !column.is_integer || !column.dims.empty()) {
      refuse("it takes parts of a tensor");
    }
    const std::int64_t number = column.integers[0] < 0 ? column.integers[0] + tensor->shape[1] : column.integers[0];
    if (number < 0 || number >= tensor->shape[1]) refuse("it takes column {} of the ids", column.integers[0]);
    return graph.put(node, IdColumn{number});
  }
  const auto* column = std::get_if<IdColumn>(index);
  const Constant& table = graph.numbers(node, 0, "its table");
  if (column == nullptr || axis != 0 || table.dims.size() != 2) refuse("it takes parts of a tensor");
  ImportedLayer layer{.name = graph.name_for(node, table.name)};
  v1::Embedding& embedding = *layer.message.mutable_embedding();
  embedding.set_rows(static_cast<int>(std::min<std::int64_t>(table.dims[0], 1 << 30)));
  embedding.set_width(static_cast<int>(std::min<std::int64_t>(table.dims[1], 1 << 30)));
  if (column->column != 0) embedding.set_column(static_cast<int>(column->column));
  layer.weights.push_back(weight_of("weight", {table.dims[0], table.dims[1]}, table.numbers));
  graph.use_weight(table);
  graph.add(node, std::move(layer), {Tensor{.source = kImageSource, .shape = graph.layers().input_shape()}});
}

}  // namespace

const OperatorTable& matrix_operators() {
  static const OperatorTable kTable = {{"Gather", import_gather}, {"Gemm", import_gemm}, {"MatMul", import_matmul}};
  return kTable;
}

void write_operator(LayerWriter& layer, const engine::DenseSpec& spec) {
  std::string features = layer.input();
  if (spec.input.shape().rank() != 2) {
    onnx::Node& flatten = layer.step("Flatten", "flatten", {features});
    set_attribute(flatten, "axis", std::int64_t{1});
    features = flatten.output(0);
  }
  set_attribute(layer.finish("Gemm", layer.operands({features})), "transB", std::int64_t{1});
}

void write_operator(LayerWriter& layer, const engine::EmbeddingSpec& spec) {
  onnx::Node& ids =
      layer.step("Gather", "ids", {layer.input(), layer.file().add_integer(layer.part_name("column"), spec.column)});
  set_attribute(ids, "axis", std::int64_t{1});
  set_attribute(layer.finish("Gather", {layer.parameter(0), ids.output(0)}), "axis", std::int64_t{0});
}

void write_operator(LayerWriter& layer, const engine::InnerProductSpec& spec) {
  const std::string product = layer.step("Mul", "mul", {layer.input(0), layer.input(1)}).output(0);
  const std::array<std::int64_t, 1> axis{1};
  const std::vector<std::string> sum{product, layer.file().add_integers(layer.part_name("axis"), axis)};
  if (spec.bias) {
    layer.finish("Add", {layer.step("ReduceSum", "sum", sum).output(0), layer.parameter(0)});
  } else {
    layer.finish("ReduceSum", sum);
  }
}

}  // namespace arbalest::jobs
