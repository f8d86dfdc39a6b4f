// Local response normalization across channels (Krizhevsky et al., 2012; the formula of Caffe and PyTorch):
//   y_c = x_c s_c^-beta     s_c = k + alpha / size * sum of x_j^2 over the `size` channels j around c
// Channels that do not exist are left out of the sum. The gradient is
//   dx_c = dy_c s_c^-beta - 2 alpha beta / size * x_c * sum over the same j of dy_j x_j s_j^(-beta - 1)
#pragma once

#include <cstdint>

#include "engine/base/layout.h"

namespace arbalest::engine {

struct LocalResponseNormSpec {
  Layout input;           // [n, c, h, w] float32 or bfloat16, like the output
  std::int64_t size = 5;  // odd
  float alpha = 1e-4F;
  float beta = 0.75F;
  float k = 1.0F;  // above 0, to prevent division by 0
};

}  // namespace arbalest::engine
