#include "dataflow/models/model_reader.h"

#include "dataflow/models/layer_reader.h"
#include "dataflow/models/lenet.h"
#include "dataflow/models/logistic_regression.h"
#include "dataflow/models/mlp.h"

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
        const std::string element = fmt::format("hidden[{}]", hidden.size());
        issues.add("zoo.mlp." + element, out_of_range(element, width, kHidden));
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
    layers.push_back(read_layer(message, fmt::format("layers[{}]", layers.size()), issues));
  }
  return layers;
}

}  // namespace

std::vector<LayerDescription> read_model(const v1::Model& model, const InputDescription& input, FieldIssues& issues) {
  std::vector<LayerDescription> layers = read_layers(model, issues);
  if (!model.has_zoo() && layers.empty()) {
    issues.add("", "the model is empty; choose one, as in model { zoo { lenet {} } }, or list its layers");
  }
  if (!model.has_zoo()) return layers;
  if (!layers.empty()) issues.add("layers", "the model has both zoo and layers; remove one of them");
  return read_zoo(model.zoo(), input.classes, issues);
}

}  // namespace arbalest::dataflow
