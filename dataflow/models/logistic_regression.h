// A linear classifier: one dense layer and softmax.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

std::vector<LayerDescription> logistic_regression(std::int64_t classes);

}  // namespace arbalest::dataflow
