// A learner's step in one pass over flat vectors: the rule of its optimizer, weight decay, and a pull towards a
// reference vector r, which model averaging wants:
//   c = pull (w - r)     w <- w + d - c
// with d by the rule (engine/update_rule.h) and c computed from w before the step. Learning rate and weight decay carry
// the multipliers of each range.
//
// A range may be one of running statistics (ops/batch_norm.h) instead, whose gradient g is the mini-batch's statistic:
//   w <- w + statistic_momentum (g - w)
// and neither rate, decay, clipping, correction nor the optimizer's state has a part in it.
#pragma once

#include <cstdint>
#include <span>

#include "engine/bfloat16.h"
#include "engine/ops/step_parameters.h"
#include "engine/update_rule.h"

namespace arbalest::engine {

struct UpdateRange {
  std::int64_t begin = 0;  // elements [begin, end) of the flat vectors
  std::int64_t end = 0;
  float learning_rate_multiplier = 1.0F;
  float decay_multiplier = 1.0F;
  float statistic_momentum = 0.0F;  // in (0, 1]: running statistics; 0: the rule's step
  std::uint32_t reserved = 0;       // so that all bytes that a kernel gets have a value

  bool is_statistic() const noexcept { return statistic_momentum > 0.0F; }
};

struct WeightUpdate {
  float* weights = nullptr;
  BFloat16* rounded = nullptr;  // out: the new weights in low precision; null: not wanted
  // As many as state_slots(rule) names, in their order; not read in ranges of statistics.
  float* state[kMaxStateSlots] = {nullptr, nullptr};
  const float* gradient = nullptr;
  // [elements] alike: where ranges of running statistics find the mini-batch's statistics; null: in `gradient`.
  const float* statistics = nullptr;
  // The two vectors r that the weights may be pulled towards; step->reference says which, where step->pull is not 0.
  // Both null where nothing pulls: the weights are then a model of their own, so a step with an element that is not
  // finite (or about to overflow) is refused as a whole: weights and state stay as they were.
  const float* references[2] = {nullptr, nullptr};
  std::span<const UpdateRange> ranges;  // must outlive the task
  UpdateRule rule;
  const float* gradient_scale = nullptr;  // what the gradient is multiplied by (ops/gradient_clip.h); null: 1
  const StepParameters* step = nullptr;
  std::int32_t* non_finite = nullptr;  // out: refused elements, or those whose weight or state is left non-finite
};

}  // namespace arbalest::engine
