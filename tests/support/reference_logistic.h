// Plain double-precision references of l1-regularized logistic regression, without a look at the solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"

namespace arbalest::tests {

// F(w) = (1/n) sum_i log(1 + exp(-y_i (w x_i + b))) + l1 |w|_1; the last coordinate is b.
class LogisticProblem {
 public:
  LogisticProblem(const dataflow::SparseRows& rows, double l1) : l1_(l1) {
    const auto columns = static_cast<std::size_t>(rows.columns);
    for (std::size_t row = 0; row < rows.labels.size(); ++row) {
      x_.emplace_back(columns + 1, 0.0);
      x_.back().back() = 1.0;
      for (std::int64_t e = rows.starts[row]; e < rows.starts[row + 1]; ++e) {
        const auto at = static_cast<std::size_t>(e);
        x_.back()[static_cast<std::size_t>(rows.indices[at])] = rows.values[at];
      }
      y_.push_back(rows.labels[row]);
    }
  }

  std::size_t coordinates() const { return x_.front().size(); }
  double lambda(std::size_t j) const { return j + 1 == coordinates() ? 0.0 : l1_; }
  double rows() const { return static_cast<double>(y_.size()); }

  double margin(std::size_t i, const std::vector<double>& w) const {
    double sum = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) sum += w[j] * x_[i][j];
    return y_[i] * sum;
  }
  double objective(const std::vector<double>& w) const {
    double loss = 0.0;
    for (std::size_t i = 0; i < y_.size(); ++i) loss += std::log1p(std::exp(-margin(i, w)));
    double norm = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) norm += lambda(j) * std::abs(w[j]);
    return loss / rows() + norm;
  }
  std::vector<double> gradient(const std::vector<double>& w) const {
    std::vector<double> g(w.size(), 0.0);
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double p = 1.0 / (1.0 + std::exp(margin(i, w)));
      for (std::size_t j = 0; j < w.size(); ++j) g[j] -= y_[i] * p * x_[i][j] / rows();
    }
    return g;
  }
  // U_j with the bound delta of the coordinate's step.
  double curvature(std::size_t j, const std::vector<double>& w, double delta) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double p = 1.0 / (1.0 + std::exp(margin(i, w)));
      sum += std::min(0.25, p * (1.0 - p) * std::exp(std::abs(x_[i][j]) * delta)) * x_[i][j] * x_[i][j];
    }
    return sum / rows();
  }
  // The largest violation of the conditions of a minimum.
  double violation(const std::vector<double>& w) const {
    const std::vector<double> g = gradient(w);
    double worst = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double l = lambda(j);
      worst = std::max(worst, w[j] == 0.0 ? std::abs(g[j]) - l : std::abs(g[j] + (w[j] > 0.0 ? l : -l)));
    }
    return worst;
  }
  // The minimum, by many small steps of proximal gradient with Nesterov's momentum (FISTA).
  std::vector<double> minimum(int steps) const {
    double longest = 0.0;
    for (const auto& x : x_) {
      double square = 0.0;
      for (const double value : x) square += value * value;
      longest = std::max(longest, square);
    }
    const double step = 4.0 / longest;
    std::vector<double> w(coordinates(), 0.0);
    std::vector<double> ahead = w;
    double t = 1.0;
    for (int s = 0; s < steps; ++s) {
      const std::vector<double> g = gradient(ahead);
      const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * t * t));
      for (std::size_t j = 0; j < w.size(); ++j) {
        const double moved = ahead[j] - step * g[j];
        const double shrunk = std::copysign(std::max(0.0, std::abs(moved) - step * lambda(j)), moved);
        ahead[j] = shrunk + (t - 1.0) / next * (shrunk - w[j]);
        w[j] = shrunk;
      }
      t = next;
    }
    return w;
  }

 private:
  std::vector<std::vector<double>> x_;
  std::vector<double> y_;
  double l1_;
};

// Sequential block proximal descent: one pass visits blocks [first, end) in the given order. The gradient of a block
// misses the steps of the `delay` blocks before it.
class BlockDescent {
 public:
  struct Block {
    std::size_t first;
    std::size_t end;
  };

  BlockDescent(const LogisticProblem& problem, int delay)
      : problem_(problem),
        delay_(static_cast<std::size_t>(delay)),
        w_(problem.coordinates(), 0.0),
        delta_(w_.size(), 1.0),
        dropped_(w_.size(), false) {}

  void pass(const std::vector<Block>& order) {
    std::vector<std::vector<double>> seen;  // weights before each block
    double worst = 0.0;
    for (std::size_t t = 0; t < order.size(); ++t) {
      seen.push_back(w_);
      const std::vector<double>& old = seen[t - std::min(t, delay_)];
      const std::vector<double> g = problem_.gradient(old);
      for (std::size_t j = order[t].first; j < order[t].end; ++j) {
        const double l = problem_.lambda(j);
        if (!dropped_[j]) dropped_[j] = w_[j] == 0.0 && std::abs(g[j]) < l - threshold_;
        if (dropped_[j]) continue;
        worst = std::max(worst, w_[j] == 0.0 ? std::abs(g[j]) - l : std::abs(g[j] + (w_[j] > 0.0 ? l : -l)));
        const double u = problem_.curvature(j, old, delta_[j]);
        const double moved = w_[j] - g[j] / u;
        const double target = std::copysign(std::max(0.0, std::abs(moved) - l / u), moved);
        const double d = std::clamp(target - w_[j], -delta_[j], delta_[j]);
        delta_[j] = std::min(5.0, 2.0 * std::abs(d) + 0.1);
        w_[j] += d;
      }
    }
    threshold_ = 10.0 * worst / problem_.rows();
  }

  const std::vector<double>& weights() const { return w_; }

 private:
  const LogisticProblem& problem_;
  std::size_t delay_;
  std::vector<double> w_;
  std::vector<double> delta_;
  std::vector<bool> dropped_;
  double threshold_ = std::numeric_limits<double>::infinity();
};

}  // namespace arbalest::tests
