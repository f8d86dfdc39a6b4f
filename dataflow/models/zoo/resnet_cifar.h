// Residual networks for small images (He et al., 2015, section 4.2), with shortcuts without parameters (option A).
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void resnet_cifar(const v1::ResnetCifar& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
