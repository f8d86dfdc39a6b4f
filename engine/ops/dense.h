// Fully connected layer: y[n, o] = bias[o] + sum over f of x[n, f] * w[o, f], features f in canonical (c, h, w) order.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/layout.h"
#include "engine/ops/activation.h"

namespace arbalest::engine {

struct DenseSpec {
  // [n, ...] float32 or bfloat16; every axis except the first counts as features. The output's type follows the
  // precision.
  Layout input;
  std::int64_t units = 0;  // o; output [n, o], weights [o, features], bias [o]
  bool bias = true;
  // Applied to the output in the same pass; backward then reads the output.
  std::optional<ActivationFunction> activation = {};
};

}  // namespace arbalest::engine
