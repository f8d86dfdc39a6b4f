// A multilayer perceptron: dense layers with ReLU between them.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void mlp(const v1::Mlp& options, ZooBuilder& model);

}  // namespace arbalest::dataflow
