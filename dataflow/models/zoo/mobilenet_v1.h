// MobileNet-v1 (Howard et al., 2017): depthwise separable convolutions; layers are named like torchvision's MobileNets.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void mobilenet_v1(ZooBuilder& model);

}  // namespace arbalest::dataflow
