// A linear classifier: one dense layer and softmax.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void logistic_regression(ZooBuilder& model) {
  // The problem is convex, so zeros are a good start.
  model.classify("logits").mutable_weight()->mutable_initializer()->mutable_constant();
}

}  // namespace arbalest::dataflow
