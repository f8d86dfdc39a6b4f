// y = f(a + b), element by element, where f is the optional activation. With an activation, backward reads the output.
// Inputs: a, b. The output has the layout of one input; an input with another layout is copied.
#pragma once

#include <optional>

#include "engine/base/layout.h"
#include "engine/ops/activation.h"

namespace arbalest::engine {

struct AddSpec {
  Layout a;                                       // any shape, float32 or bfloat16; the output is bfloat16 if a or b is
  Layout b;                                       // of the same shape
  std::optional<ActivationKind> activation = {};  // kRelu
};

}  // namespace arbalest::engine
