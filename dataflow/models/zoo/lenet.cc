// LeNet as Caffe trains it on MNIST (after LeCun et al., 1998): 431,080 parameters for 28x28 images and 10 classes.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

// Batch normalization makes a bias superfluous.
template <typename Message>
void start(Message& layer, bool batch_norm) {
  start_with_xavier(layer);
  if (batch_norm) layer.set_use_bias(false);
}

void halved_features(ZooBuilder& model, int number, int filters, bool batch_norm) {
  const std::string n = std::to_string(number);
  start(model.conv("conv" + n, filters, {.kernel = 5}), batch_norm);
  if (batch_norm) {
    model.batch_norm("bn" + n);
    model.relu("relu" + n);
  }
  model.max_pool("pool" + n, {.kernel = 2, .stride = 2});
}

}  // namespace

void lenet(const v1::Lenet& options, ZooBuilder& model) {
  model.require_sides(16);
  const bool batch_norm = options.batch_norm();
  halved_features(model, 1, 20, batch_norm);
  halved_features(model, 2, 50, batch_norm);
  start(model.dense("dense1", 500), batch_norm);
  if (batch_norm) model.batch_norm("bn3");
  model.relu(batch_norm ? "relu3" : "relu1");
  model.classify("logits");
}

}  // namespace arbalest::dataflow
