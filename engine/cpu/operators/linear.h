// Builds operators of convolutions and dense layers from their chosen kernels.
#pragma once

#include <memory>
#include <optional>

#include <dnnl.hpp>

#include "engine/cpu/onednn/primitives.h"
#include "engine/operator.h"

namespace arbalest::engine::cpu {

// Tensors in another layout than a kernel's are copied. A kernel that describes `input` as [n, features] gets it in
// canonical order.
//   weights:    their shape in canonical order; the kernels may split an axis of it
//   activation: applied to the output; a separate step if the kernels do not apply it
std::unique_ptr<Operator> make_linear(const Layout& input, const Shape& weights, const LinearKernels& kernels,
                                      std::optional<ActivationFunction> activation, const PrepareOptions& options,
                                      const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
