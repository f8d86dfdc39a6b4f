// AlexNet (Krizhevsky et al., 2012) in torchvision's or Caffe's version, with that version's layer names.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void alexnet(const v1::Alexnet& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
