// Computes the factor that scales a learner's gradient g to a norm of at most `max_norm`, as in
// torch.nn.utils.clip_grad_norm_:
//   scale = min(1, max_norm / (|g| + 1e-6)),     |g| = sqrt(sum_i g_i^2)
// Sums are in double and in one order, whatever the number of threads. The update multiplies by the scale
// (engine/passes/weight_update.h), so the gradient is read once more and not written. Padding is zero and adds nothing.
#pragma once

#include <cstdint>

namespace arbalest::engine {

struct GradientClip {
  const float* gradient = nullptr;
  std::int64_t elements = 0;
  float max_norm = 0.0F;
  float* scale = nullptr;  // out
};

}  // namespace arbalest::engine
