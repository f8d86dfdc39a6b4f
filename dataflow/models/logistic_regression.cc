#include "dataflow/models/logistic_regression.h"

#include "dataflow/layers/classification.h"
#include "dataflow/layers/dense.h"

namespace arbalest::dataflow {

std::vector<LayerDescription> logistic_regression(std::int64_t classes) {
  // The problem is convex: zeros are as good a start as any.
  const DenseLayer::Options logits{.units = classes, .weight = {.initializer = {.kind = Initializer::Kind::kConstant}}};
  return {
      {"logits", {"image"}, std::make_shared<DenseLayer>(logits)},
      {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()},
  };
}

}  // namespace arbalest::dataflow
