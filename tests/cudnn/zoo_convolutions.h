// The convolutions of the zoo in the form that the CUDA device prepares.
#pragma once

#include <string>
#include <vector>

#include "tests/cudnn/convolution.h"

namespace arbalest::tests::cudnn {

struct ZooConvolution {
  std::string model;  // the first model with this convolution: "resnet_cifar { depth: 32 }, 64 examples"
  Convolution convolution;
  bool input_gradient = false;  // some layer needs the input's gradient
};

// Returns every distinct convolution of the zoo's models with their usual batch sizes, in the order of the models. Each
// plan is prepared for training on device "cuda:0", and its tensors determine the convolution's order.
std::vector<ZooConvolution> zoo_convolutions(engine::Precision precision);

}  // namespace arbalest::tests::cudnn
