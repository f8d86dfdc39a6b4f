// The convolutions of the zoo, as the CUDA device prepares them.
#pragma once

#include <string>
#include <vector>

#include "tests/cudnn/convolution.h"

namespace arbalest::tests::cudnn {

struct ZooConvolution {
  std::string model;  // the first model that has it: "resnet_cifar { depth: 32 }, 64 examples"
  Convolution convolution;
  bool input_gradient = false;  // some layer wants it
};

// Every distinct convolution of the zoo's models at their usual mini-batches, in the order of the models. Each plan is
// prepared for training on device "cuda:0", whose tensors tell the order.
std::vector<ZooConvolution> zoo_convolutions(engine::Precision precision);

}  // namespace arbalest::tests::cudnn
