// Convolutions and dense layers by our own kernels, for which a team is one launch.
#pragma once

#include <memory>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

// Null if our kernels do not support the operator, or if the rule prefers a library: a rule, not a measurement, takes
// them for convolutions of at most 64 channels and filters in one group, and for dense layers of at most 128 examples.
std::unique_ptr<Operator> make_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_tiled_operator(const DenseSpec& spec, const PrepareOptions& options);

}  // namespace arbalest::engine::cuda
