// Fully connected layer: y[n, o] = bias[o] + sum over f of x[n, f] * w[o, f], features f in canonical (c, h, w) order.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/layout.h"
#include "engine/ops/activation.h"

namespace arbalest::engine {

struct DenseSpec {
  Layout input;  // [n, ...] float32 or bfloat16 (the output's type follows the precision); every axis but the first
                 // counts as features
  std::int64_t units = 0;  // o; output [n, o], weights [o, features], bias [o]
  bool bias = true;
  std::optional<ActivationFunction> activation =
      {};  // applied to the output in the same pass; backward reads the output
};

}  // namespace arbalest::engine
