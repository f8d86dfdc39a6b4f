// Residual networks for ImageNet; layers are named as in torchvision.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void resnet(const v1::Resnet& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
