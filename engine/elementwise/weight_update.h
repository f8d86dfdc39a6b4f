// One element of a learner's step (formulas: engine/base/update_rule.h, engine/passes/weight_update.h). No fused
// multiply-add is used, and square roots and quotients are rounded as in IEEE 754, because host and device must give
// the same bits.
#pragma once

#include <cmath>

#include "engine/elementwise/finite.h"
#include "engine/elementwise/portable.h"
#include "engine/passes/weight_update.h"

namespace arbalest::engine::elementwise {

// A step of this size or more counts as divergence, and so does a gradient of this size that the rule squares: the
// square of a smaller gradient is finite.
constexpr float kTooLarge = 1e18F;

// NaN counts as too large, because comparisons with it are false.
ARBALEST_HOST_DEVICE bool is_too_large(float value) { return !(__builtin_fabsf(value) < kTooLarge); }

// State of one element; unused slots stay 0.
struct ElementState {
  float slots[kMaxStateSlots];
};

// Terms that are constant over a range.
struct RangeTerms {
  float learning_rate;   // gamma times the range's multiplier
  float decay;           // lambda times the range's multiplier
  float gradient_scale;  // from clipping
};

ARBALEST_HOST_DEVICE RangeTerms range_terms(const StepParameters& step, const UpdateRange& range, float weight_decay,
                                            float gradient_scale) {
  return {step.learning_rate * range.learning_rate_multiplier, weight_decay * range.decay_multiplier, gradient_scale};
}

// g + lambda w
ARBALEST_HOST_DEVICE float decayed(float weight, float gradient, const RangeTerms& terms) {
  return terms.gradient_scale * gradient + terms.decay * weight;
}

// Each step below is made for one range and has
//   kSlots      number of vectors that it keeps
//   kSquares    slot that holds squares, whose overflow the step does not show; -1: none
//   refuses     whether this element's step indicates divergence; asked only if nothing pulls, and one
//               such element stops the whole step
//   move        returns d and updates the state

struct PlainSgdStep {
  using Options = Sgd;
  static constexpr int kSlots = 0;
  static constexpr int kSquares = -1;
  RangeTerms terms;

  static ARBALEST_HOST_DEVICE PlainSgdStep make(const Sgd& options, const StepParameters& step,
                                                const UpdateRange& range, float gradient_scale) {
    return {range_terms(step, range, options.weight_decay, gradient_scale)};
  }
  ARBALEST_HOST_DEVICE bool refuses(float weight, float gradient) const {
    return is_too_large(terms.learning_rate * decayed(weight, gradient, terms));
  }
  ARBALEST_HOST_DEVICE float move(float weight, float gradient, ElementState& /*state*/) const {
    return -(terms.learning_rate * decayed(weight, gradient, terms));
  }
};

template <bool nesterov>
struct MomentumSgdStep {
  using Options = Sgd;
  static constexpr int kSlots = 1;
  static constexpr int kSquares = -1;
  RangeTerms terms;
  float momentum;

  static ARBALEST_HOST_DEVICE MomentumSgdStep make(const Sgd& options, const StepParameters& step,
                                                   const UpdateRange& range, float gradient_scale) {
    return {range_terms(step, range, options.weight_decay, gradient_scale), options.momentum};
  }
  ARBALEST_HOST_DEVICE bool refuses(float weight, float gradient) const {
    return is_too_large(terms.learning_rate * decayed(weight, gradient, terms));
  }
  ARBALEST_HOST_DEVICE float move(float weight, float gradient, ElementState& state) const {
    const float step = terms.learning_rate * decayed(weight, gradient, terms);
    const float v = momentum * state.slots[0] - step;
    state.slots[0] = v;
    return nesterov ? momentum * v - step : v;
  }
};

template <bool has_momentum>
struct RmsPropStep {
  using Options = RmsProp;
  static constexpr int kSlots = has_momentum ? 2 : 1;
  static constexpr int kSquares = 0;
  RangeTerms terms;
  float smoothing;
  float momentum;
  float epsilon;

  static ARBALEST_HOST_DEVICE RmsPropStep make(const RmsProp& options, const StepParameters& step,
                                               const UpdateRange& range, float gradient_scale) {
    return {range_terms(step, range, options.weight_decay, gradient_scale), options.smoothing, options.momentum,
            options.epsilon};
  }
  ARBALEST_HOST_DEVICE bool refuses(float weight, float gradient) const {
    return is_too_large(decayed(weight, gradient, terms));
  }
  ARBALEST_HOST_DEVICE float move(float weight, float gradient, ElementState& state) const {
    const float g = decayed(weight, gradient, terms);
    const float q = smoothing * state.slots[0] + (1.0F - smoothing) * (g * g);
    state.slots[0] = q;
    float b = g / (std::sqrt(q) + epsilon);
    if constexpr (has_momentum) {
      b = momentum * state.slots[1] + b;
      state.slots[1] = b;
    }
    return -(terms.learning_rate * b);
  }
};

struct AdagradStep {
  using Options = Adagrad;
  static constexpr int kSlots = 1;
  static constexpr int kSquares = 0;
  RangeTerms terms;
  float epsilon;

  static ARBALEST_HOST_DEVICE AdagradStep make(const Adagrad& options, const StepParameters& step,
                                               const UpdateRange& range, float gradient_scale) {
    return {range_terms(step, range, options.weight_decay, gradient_scale), options.epsilon};
  }
  ARBALEST_HOST_DEVICE bool refuses(float weight, float gradient) const {
    return is_too_large(decayed(weight, gradient, terms));
  }
  ARBALEST_HOST_DEVICE float move(float weight, float gradient, ElementState& state) const {
    const float g = decayed(weight, gradient, terms);
    const float q = state.slots[0] + g * g;
    state.slots[0] = q;
    return -(terms.learning_rate * (g / (std::sqrt(q) + epsilon)));
  }
};

struct AdamWStep {
  using Options = AdamW;
  static constexpr int kSlots = 2;
  static constexpr int kSquares = 1;
  RangeTerms terms;
  float beta1;
  float beta2;
  float epsilon;
  float corrections[2];  // moment_corrections()

  static ARBALEST_HOST_DEVICE AdamWStep make(const AdamW& options, const StepParameters& step, const UpdateRange& range,
                                             float gradient_scale) {
    return {range_terms(step, range, options.weight_decay, gradient_scale),
            options.beta1,
            options.beta2,
            options.epsilon,
            {step.moment_corrections[0], step.moment_corrections[1]}};
  }
  ARBALEST_HOST_DEVICE bool refuses(float /*weight*/, float gradient) const {
    return is_too_large(terms.gradient_scale * gradient);
  }
  ARBALEST_HOST_DEVICE float move(float weight, float gradient, ElementState& state) const {
    const float g = terms.gradient_scale * gradient;
    const float p = beta1 * state.slots[0] + (1.0F - beta1) * g;
    const float q = beta2 * state.slots[1] + (1.0F - beta2) * (g * g);
    state.slots[0] = p;
    state.slots[1] = q;
    const float direction = p * corrections[0] / (std::sqrt(q) * corrections[1] + epsilon);
    return -(terms.learning_rate * (terms.decay * weight + direction));
  }
};

// Moves a running statistic towards the mini-batch's statistic, which is stored in place of a gradient. Refuses a
// change that is not finite, or of size kTooLarge or more.
struct StatisticStep {
  static constexpr int kSlots = 0;
  static constexpr int kSquares = -1;
  float momentum;

  static ARBALEST_HOST_DEVICE StatisticStep make(const UpdateRange& range) { return {range.statistic_momentum}; }
  ARBALEST_HOST_DEVICE bool refuses(float running, float batch) const {
    return is_too_large(momentum * (batch - running));
  }
  ARBALEST_HOST_DEVICE float move(float running, float batch, ElementState& /*state*/) const {
    return momentum * (batch - running);
  }
};

struct MovedElement {
  float weight;
  std::int32_t non_finite;  // 1: the weight or the state is not finite
};

// The step of one element. reference: the value that the weight is pulled towards; unused unless `corrected`.
template <bool corrected, typename Step>
ARBALEST_HOST_DEVICE MovedElement move_element(const Step& step, float weight, float gradient, float reference,
                                               float pull, ElementState& state) {
  const float moved = weight + step.move(weight, gradient, state);
  const float next = corrected ? moved - pull * (weight - reference) : moved;
  std::int32_t non_finite = count_non_finite(next);
  if constexpr (Step::kSquares >= 0) non_finite |= count_non_finite(state.slots[Step::kSquares]);
  return {next, non_finite};
}

// Passes a type of step as an argument.
template <typename Step>
struct StepKind {
  using Type = Step;
};

// Calls body(StepKind<Step>(), options) with the step of `rule`; host code.
template <typename Body>
void with_step(const UpdateRule& rule, const Body& body) {
  if (const auto* sgd = std::get_if<Sgd>(&rule)) {
    if (sgd->momentum == 0.0F) return body(StepKind<PlainSgdStep>(), *sgd);
    if (sgd->nesterov) return body(StepKind<MomentumSgdStep<true>>(), *sgd);
    return body(StepKind<MomentumSgdStep<false>>(), *sgd);
  }
  if (const auto* rms_prop = std::get_if<RmsProp>(&rule)) {
    if (rms_prop->momentum == 0.0F) return body(StepKind<RmsPropStep<false>>(), *rms_prop);
    return body(StepKind<RmsPropStep<true>>(), *rms_prop);
  }
  if (const auto* adagrad = std::get_if<Adagrad>(&rule)) return body(StepKind<AdagradStep>(), *adagrad);
  return body(StepKind<AdamWStep>(), std::get<AdamW>(rule));
}

}  // namespace arbalest::engine::elementwise
