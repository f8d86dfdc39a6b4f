// VGG (Simonyan and Zisserman, 2015); layers are named as in torchvision.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void vgg(const v1::Vgg& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
