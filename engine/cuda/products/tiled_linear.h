// Convolutions and dense layers by our own kernels, for which a team is one launch.
#pragma once

#include <memory>

#include "engine/operator.h"

namespace arbalest::engine::cuda {

// Whether our kernels support the operator: at most 512 channels and filters in one group, or at most 512 examples of a
// dense layer, whose weights are in its input's order. With more, libraries are known to be faster.
bool has_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options);
bool has_tiled_operator(const DenseSpec& spec, const PrepareOptions& options);

// The rule that takes them without a measurement: at most 64 channels and filters; at most 128 examples.
bool prefers_tiled_operator(const Conv2dSpec& spec);
bool prefers_tiled_operator(const DenseSpec& spec);

// Requires has_tiled_operator().
std::unique_ptr<Operator> make_tiled_operator(const Conv2dSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_tiled_operator(const DenseSpec& spec, const PrepareOptions& options);

}  // namespace arbalest::engine::cuda
