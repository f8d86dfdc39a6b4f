// LeNet as Caffe trains it on MNIST (after LeCun et al., 1998): 431,080 parameters for 28x28 images and 10 classes.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

std::vector<LayerDescription> lenet(std::int64_t classes);

}  // namespace arbalest::dataflow
