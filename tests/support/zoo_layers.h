// Models of the zoo, for tests below the job file.
#pragma once

#include <string>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::tests {

// `model`: text as in a job file, such as "vgg { depth: 11 }". It must be valid.
std::vector<dataflow::LayerDescription> zoo_layers(const std::string& model, const dataflow::InputDescription& input);

// LeNet for MNIST.
inline std::vector<dataflow::LayerDescription> lenet() {
  return zoo_layers("lenet {}", dataflow::image_input({1, 28, 28}, 10));
}

}  // namespace arbalest::tests
