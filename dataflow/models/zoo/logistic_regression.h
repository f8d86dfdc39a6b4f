// A linear classifier: one dense layer and softmax.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void logistic_regression(ZooBuilder& model);

}  // namespace arbalest::dataflow
