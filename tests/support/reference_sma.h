// Synchronous model averaging in plain double arithmetic, straight from its formulas (design section 5): what the
// scheduler, learners and averager together must compute.
#pragma once

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
  std::vector<double> decay_multipliers{};     // by element; empty: all 1
  std::vector<double> central{};               // z
  std::vector<double> previous{};              // z of the round before
  std::vector<std::vector<double>> weights{};  // by learner
  std::vector<ReferenceUpdate> updates{};      // by learner
  std::uint64_t next_task = 0;

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

  void round(double rate, const Gradient& gradient) {
    std::vector<double> corrections(central.size(), 0.0);
    for (int step = 1; step <= period; ++step) {
      for (std::size_t j = 0; j < weights.size(); ++j) {
        std::vector<double>& w = weights[j];
        const std::vector<double> g = gradient(next_task++, w);
        const double scale = clip_gradient_norm ? reference_clip(g, static_cast<double>(*clip_gradient_norm)) : 1.0;
        updates[j].begin_step();
        for (std::size_t i = 0; i < w.size(); ++i) {
          const double c = step == period && learners > 1 ? alpha * (w[i] - central[i]) : 0.0;
          const double decay = decay_multipliers.empty() ? 1.0 : decay_multipliers[i];
          w[i] += updates[j].move(i, w[i], scale * g[i], rate, decay) - c;
          corrections[i] += c;
        }
      }
    }
    for (std::size_t i = 0; i < central.size(); ++i) {
      const double next = central[i] + corrections[i] + central_momentum * (central[i] - previous[i]);
      previous[i] = central[i];
      central[i] = next;
    }
    if (learners == 1) central = weights[0];  // plain SGD: the central model is the weights
  }
};

}  // namespace arbalest::tests
