// A multilayer perceptron: dense layers with ReLU between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataflow/graph.h"

namespace arbalest::dataflow {

// `hidden`: widths of the hidden layers, first to last.
std::vector<LayerDescription> mlp(std::span<const std::int64_t> hidden, std::int64_t classes);

}  // namespace arbalest::dataflow
