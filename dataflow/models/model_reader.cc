#include "dataflow/models/model_reader.h"

#include "dataflow/models/accuracy_reader.h"
#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/layer_reader.h"
#include "dataflow/models/zoo/zoo.h"

namespace arbalest::dataflow {

namespace {

std::vector<LayerDescription> read_layers(const v1::Model& model, FieldIssues& issues) {
  std::vector<LayerDescription> layers;
  for (const v1::Layer& message : model.layers()) {
    layers.push_back(read_layer(message, fmt::format("layers[{}]", layers.size()), issues));
  }
  return layers;
}

// The layers of a zoo model are read like a user's layers, and have no issues.
std::vector<LayerDescription> read_zoo(const v1::Zoo& zoo, const InputDescription& input, FieldIssues& issues) {
  v1::Model listed;
  *listed.mutable_layers() = expand(zoo, input, issues);
  fill_defaults(listed);
  FieldIssues none;
  std::vector<LayerDescription> layers = read_layers(listed, none);
  ARBALEST_CHECK(none.empty());
  return layers;
}

}  // namespace

void fill_defaults(v1::Model& model) {
  fill_fields(model);
  for (v1::Layer& layer : *model.mutable_layers()) fill_layer(layer);
}

std::vector<LayerDescription> read_model(const v1::Model& model, const InputDescription& input, FieldIssues& issues) {
  std::vector<LayerDescription> layers = read_layers(model, issues);
  if (!model.has_zoo() && layers.empty()) {
    issues.add("", "the model is empty; choose one, as in model { zoo { lenet {} } }, or list its layers");
  }
  if (model.has_zoo()) {
    if (!layers.empty()) issues.add("layers", "the model has both zoo and layers; remove one of them");
    layers = read_zoo(model.zoo(), input, issues);
  }
  if (model.has_accuracy()) append_accuracy(model.accuracy(), layers, issues);
  return layers;
}

}  // namespace arbalest::dataflow
