// Convolutions for predictions: their weights are loaded once, and nothing is kept for a backward pass. Winograd's
// minimal filtering then reads transformed weights.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// Whether the kernels for transformed weights are faster than oneDNN's. Never if the layouts of the weights are given,
// as they are where inference repeats the arithmetic of training.
bool prefers_transformed_weights(const Conv2dSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_prediction_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                                 const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
