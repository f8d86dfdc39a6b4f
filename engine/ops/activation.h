// Elementwise nonlinearities:
//   relu max(x, 0)   tanh   sigmoid 1 / (1 + exp(-x))   leaky_relu x if x > 0, else slope x
//   relu6 min(max(x, 0), 6) (Howard et al., 2017)   hard_swish x relu6(x + 3) / 6 (Howard et al., 2019)
//   gelu x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel, 2016)   silu x sigmoid(x)
// The backward pass reads the output, so both passes may run in place. For gelu, silu and hard_swish it needs the
// input. The derivative of hard_swish is 0 at -3 and 1 at 3.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

enum class ActivationKind { kRelu, kTanh, kSigmoid, kLeakyRelu, kGelu, kSilu, kRelu6, kHardSwish };

inline constexpr float kRelu6Limit = 6.0F;  // the largest output of kRelu6

struct ActivationFunction {
  constexpr ActivationFunction(ActivationKind of_kind, float of_slope = 0.0F) : kind(of_kind), slope(of_slope) {}
  bool operator==(const ActivationFunction&) const = default;

  ActivationKind kind;
  float slope;  // for kLeakyRelu; at least 0
};

// Whether the derivative needs the input, not only the output. Such a function cannot be part of another operator.
constexpr bool differentiates_input(ActivationKind kind) {
  return kind == ActivationKind::kGelu || kind == ActivationKind::kSilu || kind == ActivationKind::kHardSwish;
}

struct ActivationSpec {
  Layout input;  // any shape, float32 or bfloat16; the output has the same layout
  ActivationFunction function = ActivationKind::kRelu;
};

}  // namespace arbalest::engine
