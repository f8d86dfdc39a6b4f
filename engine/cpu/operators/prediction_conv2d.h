// Convolutions for predictions: nothing is kept for a backward pass, and the weights stay the same from one mini-batch
// to the next. They are transformed once for the kernel that is fastest. The bias, a sum and an activation take no pass
// of their own.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// For float32 and PrepareOptions::constant_parameters.
std::unique_ptr<Operator> make_prediction_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                                 const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
