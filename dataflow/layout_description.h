// A parameter layout as text. Processes whose devices prefer other layouts agree on one by it: sums over processes need
// the same number at the same place of every flat vector.
#pragma once

#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/device.h"

namespace arbalest::dataflow {

// One text for each parameter. They are equal if and only if all flat vectors of the layouts have the same numbers at
// the same places.
std::vector<std::string> describe_layout(const ParameterLayout& layout);

// The layout that describe_layout() has described, for the parameters of `own`, which is a layout of the same model for
// `device`. Throws engine::ErrorKind::kDevice if the parameters or the kind of device are others.
ParameterLayout layout_of(const std::vector<std::string>& description, const ParameterLayout& own,
                          const engine::Device& device);

}  // namespace arbalest::dataflow
