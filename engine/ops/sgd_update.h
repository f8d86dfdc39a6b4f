// SGD with Polyak momentum, weight decay and the correction of synchronous model averaging in one pass over flat
// vectors (design: "Synchronous model averaging"):
//   g' = g + lambda w     c = alpha (w - z^t)     v <- m v - gamma g'     w <- w + v - c
// with c computed from w before the step. lambda and gamma carry the multipliers of each range.
#pragma once

#include <cstdint>
#include <span>

#include "engine/bfloat16.h"
#include "engine/ops/step_parameters.h"

namespace arbalest::engine {

struct UpdateRange {
  std::int64_t begin = 0;  // elements [begin, end) of the flat vectors
  std::int64_t end = 0;
  float learning_rate_multiplier = 1.0F;
  float decay_multiplier = 1.0F;
};

struct SgdUpdate {
  float* weights = nullptr;
  float* momentum = nullptr;
  BFloat16* rounded = nullptr;  // out: the new weights in low precision; null: not wanted
  const float* gradient = nullptr;
  // The two buffers of the central model, read at step->parity when step->alpha is not 0. Both null where there is no
  // averaging: the weights are then the model that is saved, so a step with an element that is not finite (or about to
  // overflow) is refused as a whole: weights and momentum stay as they were.
  const float* central[2] = {nullptr, nullptr};
  std::span<const UpdateRange> ranges;  // must outlive the task
  float momentum_factor = 0.0F;         // m
  float weight_decay = 0.0F;            // lambda
  const StepParameters* step = nullptr;
  std::int32_t* non_finite = nullptr;  // out: refused elements, or weights left non-finite
};

}  // namespace arbalest::engine
