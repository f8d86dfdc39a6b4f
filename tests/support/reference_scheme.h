// A scalar reference of the synchronization schemes in double precision, written from the papers that sma/options.h
// names. It shares no code with the engine. k replicas take local steps of SGD with momentum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace arbalest::tests {

enum class ReferenceMode { kPull, kAssign, kGradient };
enum class ReferenceState { kKeep, kZero, kAverage };

// The parameters of one scheme.
struct ReferenceFormula {
  ReferenceMode mode = ReferenceMode::kPull;
  double pull = 0.0;  // a
  double eta = 1.0;
  double mu = 0.0;
  bool nesterov = false;
  bool follows_rate = false;  // for SlowMo: momentum is multiplied by gamma_t / gamma_{t-1}
  ReferenceState state = ReferenceState::kKeep;
  int period = 1;                 // tau
  double rate_coefficient = 0.0;  // QSR: tau = max(period, floor((rate_coefficient / gamma)^2))
};

struct ReferenceScheme {
  using Vector = std::vector<double>;
  using Gradient = std::function<Vector(std::uint64_t task, const Vector& weights)>;

  ReferenceFormula formula{};
  double local_momentum = 0.0;
  double weight_decay = 0.0;
  std::optional<double> clip_norm{};
  int longest_period = 1 << 30;  // limit for QSR
  Vector z{};
  Vector v{};
  std::vector<Vector> w{};  // by replica
  std::vector<Vector> m{};  // by replica: momentum of local SGD
  double last_rate = 0.0;   // gamma at the last averaging; 0: there was none
  int steps_left = 0;       // steps left in the round
  std::uint64_t next_task = 0;

  // k replicas begin at `weights`, with all momenta zero.
  void start(const Vector& weights, int k) {
    z = weights;
    v.assign(z.size(), 0.0);
    w.assign(static_cast<std::size_t>(k), z);
    m.assign(static_cast<std::size_t>(k), v);
    last_rate = 0.0;
    steps_left = 0;
  }

  // Restarts from the model: it becomes the central model and the weights of k replicas.
  void restart(int k, bool keeps_local_momenta) {
    const std::vector<Vector> momenta = m;
    start(model(), k);
    if (keeps_local_momenta) m = momenta;
  }

  Vector mean(const std::vector<Vector>& vectors) const {
    Vector result(z.size(), 0.0);
    for (const Vector& vector : vectors) {
      for (std::size_t i = 0; i < z.size(); ++i) result[i] += 1.0 / static_cast<double>(vectors.size()) * vector[i];
    }
    return result;
  }

  // The model that a run evaluates and saves: z if replicas are pulled to z, otherwise the mean of the replicas.
  Vector model() const {
    if (formula.mode == ReferenceMode::kPull && w.size() > 1) return z;
    return mean(w);
  }

  int period_at(double rate) const {
    const double wanted = std::floor(formula.rate_coefficient * formula.rate_coefficient / (rate * rate));
    return std::max(formula.period, static_cast<int>(std::min<double>(wanted, longest_period)));
  }

  // Every replica takes one step at learning rate `rate`. The central model moves at the end of a round.
  void step(double rate, const Gradient& gradient) {
    if (steps_left == 0) steps_left = period_at(rate);
    const bool ends_round = --steps_left == 0;
    const bool pulls = formula.mode == ReferenceMode::kPull && ends_round && w.size() > 1;
    std::vector<Vector> g;
    for (const Vector& weights : w) g.push_back(gradient(next_task++, weights));
    if (formula.mode == ReferenceMode::kGradient) g.assign(g.size(), mean(g));
    Vector average = mean(w);  // with kPull the central model moves by the weights before the step
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double scale = clip_norm ? std::min(1.0, *clip_norm / (norm(g[j]) + 1e-6)) : 1.0;
      for (std::size_t i = 0; i < z.size(); ++i) {
        const double correction = pulls ? formula.pull * (w[j][i] - z[i]) : 0.0;
        m[j][i] = local_momentum * m[j][i] - rate * (scale * g[j][i] + weight_decay * w[j][i]);
        w[j][i] += m[j][i] - correction;
      }
    }
    if (formula.mode == ReferenceMode::kAssign) average = mean(w);
    if (ends_round && formula.mode != ReferenceMode::kGradient) move_central(average, rate);
  }

  void move_central(const Vector& average, double rate) {
    const double rho = formula.follows_rate && last_rate > 0.0 ? rate / last_rate : 1.0;
    last_rate = rate;
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double step = formula.eta * (average[i] - z[i]);
      v[i] = formula.mu * rho * v[i] + step;
      z[i] += formula.nesterov ? step + formula.mu * v[i] : v[i];
    }
    if (formula.mode != ReferenceMode::kAssign) return;
    w.assign(w.size(), z);
    if (formula.state == ReferenceState::kZero) m.assign(m.size(), Vector(z.size(), 0.0));
    if (formula.state == ReferenceState::kAverage) m.assign(m.size(), mean(m));
  }

  static double norm(const Vector& vector) {
    double squares = 0.0;
    for (const double value : vector) squares += value * value;
    return std::sqrt(squares);
  }
};

}  // namespace arbalest::tests
