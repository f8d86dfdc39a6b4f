// Goodput: images per second, weighted by the value of an image in a mini-batch of that size.
//
// One step with B examples brings as much progress as 1 / (1 + B_noise / B) of a step along the true gradient
// (McCandlish et al. 2018, section 2.2). Per example, relative to mini-batches of B_0, that is
//
//     E(B) = (B_noise + B_0) / (B_noise + B)              goodput(k) = rate(k) E(k b)
//
// as in Pollux (Qiao et al., OSDI 2021). B_noise: noise_scale.h. B_0 is the mini-batch b of one learner. Another B_0
// would scale all goodputs by the same factor, so it affects no choice.
//
// **Why the search for the highest rate finds the highest goodput.** Over x = log2 k the slope of log2 E is -B /
// (B_noise + B) with B = k b. It is between -1 and 0 and falls as x grows: log2 E is concave. Therefore
// 1. log2 goodput is concave wherever log2 rate is, and rises nowhere steeper than log2 rate;
// 2. a bound on the rate at a count, times E there, bounds the goodput at that count;
// 3. k E(k b) never falls as k grows, and E(k b) / k falls. If no learner gets faster when others are added, the bound
//    for all counts above a measured one is the bound at the last count, and for all below it the bound at the first.
// The search stores measurements as rates, because E changes while the job trains. It applies E when it compares.
#pragma once

#include <optional>

#include "autotuner/configuration.h"
#include "autotuner/noise_scale.h"

namespace arbalest::autotuner {

// The value of an example in a round of k learners, relative to its value in a round of one learner.
class Efficiency {
 public:
  // Unknown efficiency: every example is worth 1.
  Efficiency() = default;
  // `noise_scale`: B_noise in examples; `error`: its relative standard error; `mini_batch`: b. Throws
  // std::invalid_argument for a negative or infinite scale or error, or an empty mini-batch.
  Efficiency(double noise_scale, double error, double mini_batch);
  // B_noise is larger than `noise_scale`, by an unknown factor.
  static Efficiency at_least(double noise_scale, double mini_batch);

  bool is_known() const noexcept { return noise_scale_.has_value(); }
  // Whether of() is only a lower bound.
  bool is_bound() const noexcept { return is_bound_; }
  std::optional<double> noise_scale() const noexcept { return noise_scale_; }
  // E(k b) for k `learners` in all devices and processes.
  double of(int learners) const;
  // Relative standard error of of(a) / of(b).
  double error_between(int a, int b) const;
  // Whether `later` differs from this one enough to change a choice: B_noise + b must differ by 25 % and by four
  // standard errors. An unknown `later` never differs; a known one always differs from an unknown efficiency.
  bool has_moved_to(const Efficiency& later) const;

 private:
  std::optional<double> noise_scale_;
  double error_ = 0.0;
  double mini_batch_ = 1.0;
  bool is_bound_ = false;
};

// Returns the estimate, if it determines the scale. Otherwise returns the efficiency known `before`, raised to the
// estimate's lower bound of the scale.
Efficiency learned_from(const NoiseScaleEstimate& estimate, const Efficiency& before, double mini_batch);

// The measure by which a tuner compares counts. Nothing else differs between the objectives THROUGHPUT and GOODPUT.
class Objective {
 public:
  // Throughput: examples per second.
  Objective() = default;
  // Goodput of `devices` devices with the same count, while `other_learners` train on other devices.
  Objective(const Efficiency& efficiency, int devices, int other_learners);

  bool is_goodput() const noexcept { return is_goodput_; }
  // False: goodput equals throughput, because throughput is the objective or the efficiency is unknown so far.
  bool weighs() const noexcept { return efficiency_.is_known(); }
  const Efficiency& known() const noexcept { return efficiency_; }
  double efficiency(const Configuration& count) const { return efficiency_.of(total(count)); }
  double goodput(const Configuration& count, double rate) const { return rate * efficiency(count); }
  // Relative standard error of efficiency(a) / efficiency(b).
  double error_between(const Configuration& a, const Configuration& b) const;

 private:
  int total(const Configuration& count) const { return devices_ * count.learners + other_learners_; }

  bool is_goodput_ = false;
  Efficiency efficiency_;
  int devices_ = 1;
  int other_learners_ = 0;
};

}  // namespace arbalest::autotuner
