#include "interchange/export/layer_writer.h"

#include <utility>
#include <variant>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace {

[[noreturn]] void fail_without_output(const LayerWriter& layer) {
  engine::fail(engine::ErrorKind::kInternal, "layer '{}' has no output to export", layer.of().node.name);
}

}  // namespace

std::string LayerWriter::write() {
  for (dataflow::NamedTensor& tensor : layer_.weights) parameters_.push_back(file_.add_tensor(std::move(tensor)));
  std::vector<engine::Layout> layouts;
  for (const engine::Shape& shape : layer_.inputs) layouts.emplace_back(shape, engine::DType::kFloat32, 0, nullptr);
  std::visit([this](const auto& spec) { write_operator(*this, spec); }, layer_.node.layer->operator_spec(layouts, 0));
  return layer_.output;
}

std::vector<std::string> LayerWriter::operands(std::vector<std::string> values) const {
  values.insert(values.end(), parameters_.begin(), parameters_.end());
  return values;
}

onnx::Node& LayerWriter::finish(std::string_view kind, const std::vector<std::string>& inputs) {
  if (layer_.output.empty()) layer_.output = file_.new_value(layer_.node.name);
  return file_.add(kind, layer_.node.name, inputs, layer_.output);
}

onnx::Node& LayerWriter::step(std::string_view kind, const char* part, const std::vector<std::string>& inputs) {
  const std::string name = part_name(part);
  return file_.add(kind, file_.new_node(name), inputs, file_.new_value(name));
}

void LayerWriter::pass_on() {
  if (layer_.output.empty()) {
    layer_.output = input();
  } else {
    finish("Identity", {input()});
  }
}

// Losses and metrics are not part of a model at inference.
void write_operator(LayerWriter& layer, const engine::SoftmaxCrossEntropySpec& /*spec*/) { fail_without_output(layer); }
void write_operator(LayerWriter& layer, const engine::AccuracySpec& /*spec*/) { fail_without_output(layer); }
void write_operator(LayerWriter& layer, const engine::SquaredErrorSpec& /*spec*/) { fail_without_output(layer); }
// Files hold whole layers, between which nothing is exchanged.
void write_operator(LayerWriter& layer, const engine::ExchangeSpec& /*spec*/) { fail_without_output(layer); }

}  // namespace arbalest::jobs
