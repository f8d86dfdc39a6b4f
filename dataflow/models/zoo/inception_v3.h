// Inception-v3 (Szegedy et al., 2016); layers are named as in torchvision.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void inception_v3(const v1::InceptionV3& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
