// Learning-rate schedules: pure functions of progress (examples seen / examples of the training set), never of a step
// count, because the number of learners may change.
//
// A schedule multiplies the base learning rate by a factor in [0, 1], so the base is the maximum. With e the epochs
// since the end of the warm-up, x clamped to [0, 1], and the formulas of Caffe's learning-rate policies (caffe.proto,
// SolverParameter.lr_policy) and of torch.optim.lr_scheduler, both with iterations or epochs in place of fractions:
//   fixed        1
//   inverse      (1 + gamma e)^-power                                            Caffe "inv"
//   step         factor^floor(e / epochs)                                        Caffe "step", StepLR
//   multistep    product of the factors of all drops so far                      Caffe "multistep", MultiStepLR
//   exponential  factor^e                                                        Caffe "exp", ExponentialLR
//   polynomial   final + (1 - final) (1 - x)^power,  x = e / epochs              Caffe "poly", PolynomialLR
//   cosine       anneal(1, final, x),  x = e / epochs                            CosineAnnealingLR
//   cyclic       start + (1 - start) triangle(e / epochs) amplitude^cycle        CyclicLR; Smith (WACV 2017)
//   one-cycle    anneal(start, 1, t / rising), then anneal(1, final, (t - rising) / (1 - rising)),  t = e / epochs
//                                                                                OneCycleLR; Smith and Topin (2018)
//   plateau      1; whoever runs the schedule multiplies the rate when scores stop improving   ReduceLROnPlateau
// where anneal(a, b, x) = b + (a - b) (1 + cos(pi x)) / 2, and triangle rises from 0 to 1 during the first `rising` of
// a cycle and falls back to 0 during the rest.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace arbalest::scheduler {

// The learning rate may scale with the number of learners, or with the mini-batch size.
enum class RateScaling { kKeep, kSqrt, kLinear };
// The factor of the learning rate if the number grows by `ratio`: 1, sqrt(ratio) or ratio.
double factor_of(RateScaling scaling, double ratio);

struct FixedRate {};

struct InverseDecay {
  double gamma = 0.0;
  double power = 1.0;
};

struct StepDrops {
  double epochs = 1.0;  // between two drops
  double factor = 1.0;
};

struct LearningRateDrop {
  double epoch = 0.0;   // progress at which the drop takes effect; the warm-up counts
  double factor = 1.0;  // multiplies all earlier factors
};

struct MultistepDrops {
  std::vector<LearningRateDrop> drops;  // ascending epochs
};

struct ExponentialDecay {
  double factor = 1.0;  // of one epoch
};

// These three curves have an end: the learning rate stays at its last value once their epochs are over.
struct PolynomialDecay {
  double epochs = 1.0;
  double power = 1.0;
  double final_factor = 0.0;
};

struct CosineDecay {
  double epochs = 1.0;
  double final_factor = 0.0;
};

struct OneCycle {
  double epochs = 1.0;
  double rising = 0.3;         // fraction of the epochs until the rate reaches the base
  double start_factor = 0.04;  // OneCycleLR's 1 / div_factor
  double final_factor = 4e-6;  // OneCycleLR's 1 / (div_factor final_div_factor)
};

struct Cyclic {
  double epochs = 1.0;            // of one cycle
  double rising = 0.5;            // fraction of a cycle until the rate is highest
  double start_factor = 0.1;      // factor of the lowest rate
  double amplitude_factor = 1.0;  // ratio of two successive cycles; 0.5 is CyclicLR's "triangular2"
};

// The rate is constant but for drops that depend on scores, so they are no part of the curve: Scheduler::lower_rate().
struct Plateau {
  double factor = 0.1;
  int patience = 10;              // epochs without an improvement that are allowed
  double min_improvement = 1e-4;  // least difference to the best score that counts as one
  int cooldown = 0;               // epochs after a drop that are not judged
  double min_factor = 0.0;        // the product of all drops does not fall below it
};

using LearningRateCurve = std::variant<FixedRate, InverseDecay, StepDrops, MultistepDrops, ExponentialDecay,
                                       PolynomialDecay, CosineDecay, Cyclic, OneCycle, Plateau>;

// The curve's name in a job file: "one_cycle".
std::string_view name_of(const LearningRateCurve& curve);

// The end of a curve that has one.
struct CurveEnd {
  double epochs = 0.0;
  double factor = 0.0;  // factor of the base from then on
};
// Returns none for curves without an end.
std::optional<CurveEnd> end_of(const LearningRateCurve& curve);

// A linear rise before the curve begins, from start_factor times the curve's first learning rate to that learning rate
// (Goyal et al. 2017).
struct WarmUp {
  double epochs = 0.0;  // 0: none
  double start_factor = 0.1;
};

// From `epoch` on, a curve with an end starts anew: a warm restart (Loshchilov and Hutter 2017, SGDR;
// CosineAnnealingWarmRestarts), whose length and height are its own.
struct Restart {
  double epoch = 0.0;   // progress at which the curve starts anew; the warm-up counts
  double epochs = 1.0;  // of the curve from there on
  double factor = 1.0;  // multiplies the curve from there on, until the next restart
};

struct LearningRateSchedule {
  double base = 0.0;
  LearningRateCurve curve = FixedRate{};
  WarmUp warm_up = {};
  RateScaling with_learners = RateScaling::kSqrt;
  std::optional<double> limit = {};    // largest value of the base scaled to the learners
  std::vector<Restart> restarts = {};  // ascending epochs; only of curves with an end

  // The learning rate of each of `learners` learners. progress: at least 0.
  float at(double progress, int learners) const;
  // The end of the curve after its last restart, in epochs of the run; none for curves without an end.
  std::optional<CurveEnd> end() const;
  // Number of drops of a step or multistep curve that have taken effect; 0 for continuous curves. Averaging restarts
  // when the number changes (design: "Restart").
  int drops_before(double progress) const;
  // The epoch of the run at which drop `number`, from 1, of a step or multistep curve takes effect; none if there is no
  // such drop.
  std::optional<double> epoch_of_drop(int number) const;
};

}  // namespace arbalest::scheduler
