// A learner's step in one pass over flat vectors: the optimizer's rule, weight decay, and a pull towards a reference
// vector r for model averaging:
//   c = pull (w - r)     w <- w + d - c
// with d by the rule (engine/base/update_rule.h) and c computed from w before the step. Each range has multipliers of
// learning rate and weight decay.
//
// A range can instead hold running statistics (ops/batch_norm.h), whose gradient g is the mini-batch's statistic:
//   w <- w + statistic_momentum (g - w)
// Learning rate, decay, clipping, correction and optimizer state do not apply to it.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/bfloat16.h"
#include "engine/base/update_rule.h"
#include "engine/passes/step_parameters.h"

namespace arbalest::engine {

struct UpdateRange {
  std::int64_t begin = 0;  // elements [begin, end) of the flat vectors
  std::int64_t end = 0;
  float learning_rate_multiplier = 1.0F;
  float decay_multiplier = 1.0F;
  float statistic_momentum = 0.0F;  // in (0, 1]: the range holds running statistics; 0: the rule applies
  std::uint32_t reserved = 0;       // so that all bytes passed to a kernel are initialized

  bool is_statistic() const noexcept { return statistic_momentum > 0.0F; }
};

struct WeightUpdate {
  float* weights = nullptr;
  BFloat16* rounded = nullptr;  // out: the new weights in low precision; null: not wanted
  // One vector per name of state_slots(rule), in their order; ranges of statistics are not read.
  float* state[kMaxStateSlots] = {nullptr, nullptr};
  const float* gradient = nullptr;
  // [elements], holds the mini-batch's statistics in ranges of running statistics; null: they are in `gradient`.
  const float* statistics = nullptr;
  // The two vectors r towards which the weights may be pulled; step->reference selects one if step->pull is not 0. Both
  // are null if nothing pulls: the replica is then independent, so a step with an element that is not finite (or about
  // to overflow) is refused as a whole. Weights and state then stay unchanged.
  const float* references[2] = {nullptr, nullptr};
  std::span<const UpdateRange> ranges;  // must outlive the task
  UpdateRule rule;
  const float* gradient_scale = nullptr;  // factor of the gradient (ops/gradient_clip.h); null: 1
  const StepParameters* step = nullptr;
  std::int32_t* non_finite = nullptr;  // out: number of refused elements, or of elements whose weight or state is not
                                       // finite
};

}  // namespace arbalest::engine
