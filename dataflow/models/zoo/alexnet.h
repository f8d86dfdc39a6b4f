// AlexNet (Krizhevsky et al., 2012), as torchvision or as Caffe has it; layers are named as there.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void alexnet(const v1::Alexnet& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
