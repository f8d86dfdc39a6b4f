#include "dataflow/models/mlp.h"

#include "dataflow/layers/activation.h"
#include "dataflow/layers/classification.h"
#include "dataflow/layers/dense.h"

namespace arbalest::dataflow {

std::vector<LayerDescription> mlp(std::span<const std::int64_t> hidden, std::int64_t classes) {
  const ParameterOptions xavier{.initializer = {.kind = Initializer::Kind::kXavier}};
  std::vector<LayerDescription> layers;
  std::string input = "image";
  for (const std::int64_t width : hidden) {
    const std::string number = std::to_string(layers.size() / 2 + 1);
    // He's initialization, the default, keeps the scale of features through ReLU.
    layers.push_back({"dense" + number, {input}, std::make_shared<DenseLayer>(DenseLayer::Options{.units = width})});
    layers.push_back(
        {"relu" + number, {layers.back().name}, std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu)});
    input = layers.back().name;
  }
  layers.push_back(
      {"logits", {input}, std::make_shared<DenseLayer>(DenseLayer::Options{.units = classes, .weight = xavier})});
  layers.push_back({"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()});
  return layers;
}

}  // namespace arbalest::dataflow
