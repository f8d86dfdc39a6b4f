// Synchronous model averaging in plain double arithmetic, directly from the formulas (docs/synchronization.md): the
// expected result of scheduler, learners and averager together.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tests/support/reference_update.h"

namespace arbalest::tests {

struct ReferenceSma {
  int learners = 1;
  int period = 1;
  double alpha = 1.0;
  double central_momentum = 0.0;
  engine::UpdateRule rule{};
  std::optional<float> clip_gradient_norm{};
  std::vector<double> decay_multipliers{};          // by element; empty: all 1
  std::vector<double> learning_rate_multipliers{};  // by element; empty: all 1
  // By element: the momentum of a running statistic, or 0 for a trainable element. The "gradient" of a running
  // statistic is the mini-batch's value. Empty: all elements are trainable.
  std::vector<double> statistic_momenta{};
  std::vector<double> central{};               // z
  std::vector<double> previous{};              // z of the previous round
  std::vector<std::vector<double>> weights{};  // by learner
  std::vector<ReferenceUpdate> updates{};      // by learner
  std::uint64_t next_task = 0;
  // sqrt(mean over learners of |w - z|^2 over trainable elements) at the last averaging.
  double distance = 0.0;

  using Gradient = std::function<std::vector<double>(std::uint64_t task, const std::vector<double>& weights)>;

  void start(const std::vector<double>& initial) {
    central = previous = initial;
    weights.assign(static_cast<std::size_t>(learners), initial);
    updates.assign(static_cast<std::size_t>(learners), ReferenceUpdate(rule, initial.size()));
  }

  void restart() {
    const std::vector<double> z = central;
    start(z);
  }

  bool is_statistic(std::size_t i) const { return !statistic_momenta.empty() && statistic_momenta[i] > 0.0; }

  // Only trainable elements count in the norm.
  double clip_scale(std::vector<double> gradient) const {
    if (!clip_gradient_norm) return 1.0;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = is_statistic(i) ? 0.0 : gradient[i];
    return reference_clip(gradient, static_cast<double>(*clip_gradient_norm));
  }

  void round(double rate, const Gradient& gradient) {
    std::vector<double> corrections(central.size(), 0.0);
    std::vector<double> means(central.size(), 0.0);
    double squares = 0.0;
    for (int step = 1; step <= period; ++step) {
      for (std::size_t j = 0; j < weights.size(); ++j) {
        std::vector<double>& w = weights[j];
        const std::vector<double> g = gradient(next_task++, w);
        const double scale = clip_scale(g);
        updates[j].begin_step();
        for (std::size_t i = 0; i < w.size(); ++i) {
          if (step == period) means[i] += w[i] / learners;
          if (is_statistic(i)) {
            w[i] += statistic_momenta[i] * (g[i] - w[i]);
            continue;
          }
          if (step == period) squares += (w[i] - central[i]) * (w[i] - central[i]);
          const double c = step == period && learners > 1 ? alpha * (w[i] - central[i]) : 0.0;
          const double decay = decay_multipliers.empty() ? 1.0 : decay_multipliers[i];
          const double factor = learning_rate_multipliers.empty() ? 1.0 : learning_rate_multipliers[i];
          w[i] += updates[j].move(i, w[i], scale * g[i], factor * rate, decay) - c;
          corrections[i] += c;
        }
      }
    }
    distance = std::sqrt(squares / learners);
    for (std::size_t i = 0; i < central.size(); ++i) {
      const double moved = central[i] + corrections[i] + central_momentum * (central[i] - previous[i]);
      previous[i] = central[i];
      central[i] = is_statistic(i) ? means[i] : moved;
    }
    if (learners == 1) central = weights[0];  // plain SGD: the central model is the weights
  }
};

}  // namespace arbalest::tests
