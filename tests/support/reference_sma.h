// Synchronous model averaging in plain double arithmetic, straight from its formulas (design section 5): what the
// scheduler, learners and averager together must compute.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace arbalest::tests {

struct ReferenceSma {
  int learners = 1;
  int period = 1;
  double alpha = 1.0;
  double central_momentum = 0.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  std::vector<double> central{};               // z
  std::vector<double> previous{};              // z of the round before
  std::vector<std::vector<double>> weights{};  // by learner
  std::vector<std::vector<double>> momenta{};  // by learner
  std::uint64_t next_task = 0;

  using Gradient = std::function<std::vector<double>(std::uint64_t task, const std::vector<double>& weights)>;

  void start(const std::vector<double>& initial) {
    central = previous = initial;
    weights.assign(static_cast<std::size_t>(learners), initial);
    momenta.assign(static_cast<std::size_t>(learners), std::vector<double>(initial.size(), 0.0));
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
        for (std::size_t i = 0; i < w.size(); ++i) {
          const double c = step == period && learners > 1 ? alpha * (w[i] - central[i]) : 0.0;
          momenta[j][i] = momentum * momenta[j][i] - rate * (g[i] + weight_decay * w[i]);
          w[i] += momenta[j][i] - c;
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
