#include "dataflow/models/lenet.h"

#include "dataflow/layers/activation.h"
#include "dataflow/layers/classification.h"
#include "dataflow/layers/conv2d.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/pool2d.h"

namespace arbalest::dataflow {

namespace {

const ParameterOptions kXavier{.initializer = {.kind = Initializer::Kind::kXavier}};

std::shared_ptr<const Layer> conv5x5(std::int64_t filters) {
  const engine::Window window{.kernel = {5, 5}, .stride = {1, 1}};
  return std::make_shared<Conv2dLayer>(Conv2dLayer::Options{.filters = filters, .window = window, .weight = kXavier});
}

std::shared_ptr<const Layer> halve() {
  return std::make_shared<Pool2dLayer>(
      Pool2dLayer::Options{.kind = engine::PoolKind::kMax, .window = {.kernel = {2, 2}, .stride = {2, 2}}});
}

std::shared_ptr<const Layer> dense(std::int64_t units) {
  return std::make_shared<DenseLayer>(DenseLayer::Options{.units = units, .weight = kXavier});
}

}  // namespace

std::vector<LayerDescription> lenet(std::int64_t classes) {
  return {
      {"conv1", {"image"}, conv5x5(20)},
      {"pool1", {"conv1"}, halve()},
      {"conv2", {"pool1"}, conv5x5(50)},
      {"pool2", {"conv2"}, halve()},
      {"dense1", {"pool2"}, dense(500)},
      {"relu1", {"dense1"}, std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu)},
      {"logits", {"relu1"}, dense(classes)},
      {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()},
  };
}

}  // namespace arbalest::dataflow
