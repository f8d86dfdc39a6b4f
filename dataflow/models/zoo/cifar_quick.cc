// Caffe's small convolutional network for CIFAR-10, with its initial weights and learning rates.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

template <typename Message>
void start(Message& layer, float stddev) {
  layer.mutable_weight()->mutable_initializer()->mutable_gaussian()->set_stddev(stddev);
  layer.mutable_bias()->set_learning_rate_multiplier(2.0F);
}

}  // namespace

void cifar_quick(ZooBuilder& model) {
  model.require_sides(8);
  const FilterOptions filter{.kernel = 5, .padding = 2};
  const FilterOptions half{.kernel = 3, .stride = 2};
  start(model.conv("conv1", 32, filter), 0.0001F);
  model.max_pool("pool1", half).set_ceil_mode(true);
  model.relu("relu1");
  start(model.conv("conv2", 32, filter), 0.01F);
  model.relu("relu2");
  model.average_pool("pool2", half).set_ceil_mode(true);
  start(model.conv("conv3", 64, filter), 0.01F);
  model.relu("relu3");
  model.average_pool("pool3", half).set_ceil_mode(true);
  start(model.dense("ip1", 64), 0.1F);
  start(model.classify("ip2"), 0.1F);
}

}  // namespace arbalest::dataflow
