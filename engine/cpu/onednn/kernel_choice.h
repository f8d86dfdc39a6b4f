// Chooses descriptions of oneDNN primitives, for the files that implement primitives.h.
#pragma once

#include <optional>
#include <string_view>

#include <dnnl.hpp>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"

namespace arbalest::engine::cpu {

// Attributes of every primitive: the caller gives the scratchpad, and float32 stays float32, whatever the environment
// variable ONEDNN_DEFAULT_FPMATH_MODE allows.
dnnl::primitive_attr primitive_attributes();
dnnl::prop_kind direction(OperatorMode mode);
inline dnnl::memory::dims pair(const Extent2d& extent) { return {extent.height, extent.width}; }

// The algorithm for `kind`; if there are two, the one whose backward reads the output.
dnnl::algorithm algorithm_of(ActivationKind kind);
// oneDNN's parameter alpha: the slope of a ReLU; swish is x / (1 + exp(-alpha x)).
float alpha_of(const ActivationFunction& f);
// Attributes that apply the function after another primitive.
dnnl::primitive_attr followed_by(const ActivationFunction& f);
// oneDNN's parameter beta: the upper bound of clip, whose lower bound is alpha. The other functions ignore it.
float beta_of(const ActivationFunction& f);

bool is_reference(const dnnl::primitive_desc_base& description);
// Whether oneDNN can generate the kernel. oneDNN 2.6 describes some kernels that it cannot generate: a sigmoid after a
// bfloat16 convolution of two groups, on a processor without bfloat16 instructions. A generated kernel is not made
// twice, because oneDNN caches it.
bool can_be_made(const dnnl::primitive_desc_base& description);

template <typename Description>
Description require_kernel(Description description, const char* what) {
  if (is_reference(description)) {
    fail(ErrorKind::kDevice, "oneDNN has no fast kernel for this {} on this processor", what);
  }
  return description;
}

template <typename Description>
std::optional<Description> kernel_or_none(Description description) {
  if (description.get(true) == nullptr || is_reference(description)) return std::nullopt;
  return description;
}

// `describe` makes a description of the forward primitive for given tensors.
template <typename Primitive, typename Describe>
typename Primitive::primitive_desc choose_forward(const dnnl::engine& engine, const PrepareOptions& options,
                                                  const LinearTensors& of, const Describe& describe, const char* what) {
  using Description = typename Primitive::primitive_desc;
  if (!options.parameters.empty()) {
    LinearTensors fixed = of;
    fixed.weights = cut_as(with_type(descriptor(options.parameters[0]), dtype_of(of.weights)), of.weights);
    if (auto kernel = kernel_or_none(Description(describe(fixed), primitive_attributes(), engine, true)))
      return *kernel;
  }
  return require_kernel(Description(describe(of), primitive_attributes(), engine), what);
}

// Returns the same kernel for the same layouts, with the activation in it; `chosen` itself if it cannot apply the
// activation.
template <typename Description, typename Describe>
LinearKernels with_activation(const dnnl::engine& engine, const Description& chosen, const LinearTensors& of,
                              const Describe& describe, std::optional<ActivationFunction> activation) {
  if (!activation.has_value()) return {chosen};
  const LinearTensors same{chosen.src_desc(), chosen.weights_desc(), of.bias, chosen.dst_desc()};
  const auto both = kernel_or_none(Description(describe(same), followed_by(*activation), engine, true));
  const bool is_same = both.has_value() && std::string_view(both->impl_info_str()) == chosen.impl_info_str();
  return is_same && can_be_made(*both) ? LinearKernels{*both, true} : LinearKernels{chosen};
}

}  // namespace arbalest::engine::cpu
