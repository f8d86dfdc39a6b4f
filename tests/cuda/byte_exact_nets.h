// Networks all of whose operators have kernels of ours in FP32. Their bytes depend on no library, so every GPU and the
// stand-in must get the same.
#pragma once

#include <string>

#include "tests/support/training_rig.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {

struct ByteExactNet {
  std::string model;  // of the zoo
  engine::Shape image;
};

inline const ByteExactNet kByteExactNets[] = {{"lenet {}", {1, 28, 28}}, {"resnet_cifar { depth: 20 }", {3, 32, 32}}};

// Two learners on one GPU with mini-batches of 2, so that rounds end soon on the slow stand-in.
inline RigOptions rig_of(const ByteExactNet& net) {
  RigOptions options;
  options.devices = {"cuda:0"};
  options.learners = {2};
  options.team = 2;
  options.image = net.image;
  options.classes = 10;
  options.batch = 2;
  options.examples = 24;
  options.layers = zoo_layers(net.model, dataflow::image_input(net.image, 10));
  return options;
}

}  // namespace arbalest::tests
