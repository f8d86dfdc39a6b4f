// LeNet as Caffe trains it on MNIST (after LeCun et al., 1998): 431,080 parameters for 28x28 images and 10 classes.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void lenet(const v1::Lenet& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
