// A multilayer perceptron: dense layers with ReLU between them.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void mlp(const v1::Mlp& options, ZooBuilder& model) {
  for (int i = 0; i < options.hidden_size(); ++i) {
    // He's initialization, the default, keeps the scale of features through ReLU.
    model.dense(fmt::format("dense{}", i + 1), options.hidden(i));
    model.relu(fmt::format("relu{}", i + 1));
  }
  model.classify("logits");
}

}  // namespace arbalest::dataflow
