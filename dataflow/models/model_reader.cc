#include "dataflow/models/model_reader.h"

#include "dataflow/models/layer_reader.h"
#include "dataflow/models/lenet.h"
#include "dataflow/models/logistic_regression.h"
#include "dataflow/models/mlp.h"
#include "dataflow/models/model_defaults.h"

namespace arbalest::dataflow {

namespace {

constexpr Range<int> kHidden{1, 1048576};

std::vector<LayerDescription> read_zoo(const v1::Zoo& zoo, std::int64_t classes, FieldIssues& issues) {
  switch (zoo.model_case()) {
    case v1::Zoo::kLogisticRegression:
      return logistic_regression(classes);
    case v1::Zoo::kMlp: {
      std::vector<std::int64_t> hidden;
      for (const int width : zoo.mlp().hidden()) {
        issues.add(fmt::format("zoo.mlp.hidden[{}]", hidden.size()), out_of_range("hidden", width, kHidden));
        hidden.push_back(width);
      }
      return mlp(hidden, classes);
    }
    case v1::Zoo::kLenet:
      return lenet(classes);
    case v1::Zoo::MODEL_NOT_SET:
      break;
  }
  issues.add("zoo", "zoo names no model; choose logistic_regression {}, mlp {} or lenet {}");
  return {};
}

std::vector<LayerDescription> read_layers(const v1::Model& model, FieldIssues& issues) {
  std::vector<LayerDescription> layers;
  for (const v1::Layer& message : model.layers()) {
    const std::string path = fmt::format("layers[{}]", layers.size());
    layers.push_back(
        {message.name(), {message.input().begin(), message.input().end()}, read_layer(message, path, issues)});
  }
  return layers;
}

}  // namespace

std::vector<LayerDescription> read_model(const v1::Model& model, const InputDescription& input, FieldIssues& issues) {
  v1::Model complete = model;
  fill_defaults(complete);
  std::vector<LayerDescription> layers = read_layers(complete, issues);
  if (!complete.has_zoo() && layers.empty()) {
    issues.add("", "the model is empty; choose one, as in model { zoo { lenet {} } }, or list its layers");
  }
  if (!complete.has_zoo()) return layers;
  if (!layers.empty()) issues.add("layers", "the model has both zoo and layers; remove one of them");
  return read_zoo(complete.zoo(), input.classes, issues);
}

}  // namespace arbalest::dataflow
