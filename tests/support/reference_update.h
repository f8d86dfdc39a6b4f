// A learner's optimizer in plain double arithmetic, for tests of every device. It follows the papers' and PyTorch's
// forms of the rules, not engine/base/update_rule.h: w <- w + d.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/update_rule.h"

namespace arbalest::tests {

class ReferenceUpdate {
 public:
  ReferenceUpdate(const engine::UpdateRule& rule, std::size_t elements)
      : rule_(rule), first_(elements, 0.0), second_(elements, 0.0) {}

  // Call once per step, before move().
  void begin_step() { ++step_; }

  // Returns d of element i with weight w and gradient g. `decay` multiplies the rule's weight decay.
  double move(std::size_t i, double w, double g, double rate, double decay) {
    if (const auto* sgd = std::get_if<engine::Sgd>(&rule_)) return move(*sgd, i, w, g, rate, decay);
    if (const auto* rms_prop = std::get_if<engine::RmsProp>(&rule_)) return move(*rms_prop, i, w, g, rate, decay);
    if (const auto* adagrad = std::get_if<engine::Adagrad>(&rule_)) return move(*adagrad, i, w, g, rate, decay);
    return move(std::get<engine::AdamW>(rule_), i, w, g, rate, decay);
  }

  // The vectors of engine::state_slots.
  const std::vector<double>& first() const { return first_; }
  const std::vector<double>& second() const { return second_; }

 private:
  // Nesterov momentum in Sutskever's form: the weights are the point at which the next gradient is computed.
  double move(const engine::Sgd& rule, std::size_t i, double w, double g, double rate, double decay) {
    const auto m = static_cast<double>(rule.momentum);
    const double before = first_[i];
    first_[i] = m * before - rate * (g + static_cast<double>(rule.weight_decay) * decay * w);
    return rule.nesterov ? (1.0 + m) * first_[i] - m * before : first_[i];
  }

  double move(const engine::RmsProp& rule, std::size_t i, double w, double g, double rate, double decay) {
    const double h = g + static_cast<double>(rule.weight_decay) * decay * w;
    first_[i] += (1.0 - static_cast<double>(rule.smoothing)) * (h * h - first_[i]);
    const double normalized = h / (std::sqrt(first_[i]) + static_cast<double>(rule.epsilon));
    if (rule.momentum == 0.0F) return -rate * normalized;
    second_[i] = static_cast<double>(rule.momentum) * second_[i] + normalized;
    return -rate * second_[i];
  }

  double move(const engine::Adagrad& rule, std::size_t i, double w, double g, double rate, double decay) {
    const double h = g + static_cast<double>(rule.weight_decay) * decay * w;
    first_[i] += h * h;
    return -rate * h / (std::sqrt(first_[i]) + static_cast<double>(rule.epsilon));
  }

  // The order of torch.optim.AdamW: decay first, then the step with its corrections.
  double move(const engine::AdamW& rule, std::size_t i, double w, double g, double rate, double decay) {
    const auto beta1 = static_cast<double>(rule.beta1);
    const auto beta2 = static_cast<double>(rule.beta2);
    const double kept = w * (1.0 - rate * static_cast<double>(rule.weight_decay) * decay);
    first_[i] += (1.0 - beta1) * (g - first_[i]);
    second_[i] += (1.0 - beta2) * (g * g - second_[i]);
    const double mean = first_[i] / (1.0 - std::pow(beta1, step_));
    const double square = second_[i] / (1.0 - std::pow(beta2, step_));
    return kept - rate * mean / (std::sqrt(square) + static_cast<double>(rule.epsilon)) - w;
  }

  engine::UpdateRule rule_;
  std::vector<double> first_;
  std::vector<double> second_;
  int step_ = 0;
};

// The factor that torch.nn.utils.clip_grad_norm_ applies to a gradient.
inline double reference_clip(const std::vector<double>& gradient, double max_norm) {
  double squares = 0.0;
  for (const double g : gradient) squares += g * g;
  return std::min(1.0, max_norm / (std::sqrt(squares) + 1e-6));
}

}  // namespace arbalest::tests
