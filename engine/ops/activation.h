// Elementwise nonlinearities. The backward pass reads the output, never the input, so both may run in place.
#pragma once

#include "engine/layout.h"

namespace arbalest::engine {

enum class ActivationKind { kRelu, kTanh, kSigmoid };

struct ActivationSpec {
  Layout input;  // any shape, float32 or bfloat16; output alike
  ActivationKind kind = ActivationKind::kRelu;
};

}  // namespace arbalest::engine
