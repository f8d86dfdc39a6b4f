// Caffe's small convolutional network for CIFAR-10, with its initial weights and learning rates.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void cifar_quick(ZooBuilder& model);

}  // namespace arbalest::dataflow
