// MobileNet-v2 (Sandler et al., 2018): inverted residuals with linear bottlenecks; layers are named as in torchvision.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void mobilenet_v2(const v1::MobilenetV2& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
