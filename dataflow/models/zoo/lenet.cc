#include "dataflow/models/zoo/lenet.h"

namespace arbalest::dataflow {

void lenet(ZooBuilder& model) {
  model.require_sides(16);
  start_with_xavier(model.conv("conv1", 20, {.kernel = 5}));
  model.max_pool("pool1", {.kernel = 2, .stride = 2});
  start_with_xavier(model.conv("conv2", 50, {.kernel = 5}));
  model.max_pool("pool2", {.kernel = 2, .stride = 2});
  start_with_xavier(model.dense("dense1", 500));
  model.relu("relu1");
  model.classify("logits");
}

}  // namespace arbalest::dataflow
