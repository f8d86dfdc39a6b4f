// y = f(a + b), element by element, with f the activation, if there is one. Backward reads the output if there is.
// Inputs: a, b. The output lies as an input does; an input that lies otherwise is copied.
#pragma once

#include <optional>

#include "engine/layout.h"
#include "engine/ops/activation.h"

namespace arbalest::engine {

struct AddSpec {
  Layout a;  // any shape, float32 or bfloat16; bfloat16 if either is, so is the output
  Layout b;  // of the same shape
  std::optional<ActivationKind> activation = {};  // kRelu
};

}  // namespace arbalest::engine
