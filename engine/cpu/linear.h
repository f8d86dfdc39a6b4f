// What convolutions and dense layers do once their kernels are chosen.
#pragma once

#include <memory>
#include <optional>

#include <dnnl.hpp>

#include "engine/cpu/primitives.h"
#include "engine/operator.h"

namespace arbalest::engine::cpu {

// Tensors that lie otherwise than a kernel wants are copied. A kernel that sees `input` as [n, features] finds it in
// canonical order.
// `weights`: their shape in canonical order, of which the kernels may see an axis cut in two.
// `activation`: of the output; a step of its own where the kernels do not apply it.
std::unique_ptr<Operator> make_linear(const Layout& input, const Shape& weights, const LinearKernels& kernels,
                                      std::optional<ActivationFunction> activation, const PrepareOptions& options,
                                      const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
