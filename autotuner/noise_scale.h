// The gradient noise scale: how many examples a mini-batch needs before its gradient is as much signal as noise.
//
// Let G be the gradient of the loss and S the trace of the covariance of one example's gradient. A mini-batch of B
// examples has a gradient of expected square |G|^2 + S / B, and B_noise = S / |G|^2: the simple noise scale of
// McCandlish et al., "An Empirical Model of Large-Batch Training", 2018, estimated as in their appendix A. The k
// gradients g_j of one round, each of b examples, show that square at two sizes, b and k b:
//
//     small = mean_j |g_j|^2              big = |mean_j g_j|^2
//     S     = (small - big) / (1 / b - 1 / (k b))
//     |G|^2 = (k b big - b small) / (k b - b) = big - S / (k b)
//
// Both estimates are unbiased, but their ratio is not: numerator and denominator are smoothed separately, and divided
// last. The smoothing is an exponential moving average over examples, so that it covers the same stretch of training
// for every number of learners. Dividing by the sum of the weights corrects the bias of its start.
//
// **Replicas at different points.** Under model averaging learner j computes its gradient at w_j = z + d_j, which is
// G + H d_j plus noise, H being the Hessian. The gradients' mean is then not the gradient at z. Measured on LeNet with
// four learners, S is that of `s_sgd` within 6 %, but |G|^2 is half as large, so the scale comes out about twice too
// large. Nothing corrects this: the estimate is unbiased under `s_sgd` only.
//
// **One learner.** Two successive gradients g_t and g_{t+1} replace the gradients of two learners. The step between
// them moves the weights by -lr g_t, so that E[g_t g_{t+1}] = |G|^2 - lr G'HG - lr tr(H C) / b with C the covariance,
// to first order. |G|^2 comes out too small (even negative if the learning rate keeps the loss from falling), and
// B_noise too large. So gradients of learners and successive gradients are averaged separately. When the number of
// learners changes from one to several or back, both averages are fresh. Their ratio then calibrates later successive
// gradients.
#pragma once

#include <cstdint>
#include <optional>

namespace arbalest::autotuner {

enum class GradientSource { kLearners, kSuccessive };

// Sums over the measured rounds since the previous sample.
struct GradientSample {
  GradientSource source = GradientSource::kLearners;
  int gradients = 2;          // k: gradients per round; 2 if successive
  double mini_batch = 1.0;    // b: examples per gradient
  std::int64_t rounds = 1;    // number of measured rounds
  double square_mean = 0.0;   // sum over these rounds of mean_j |g_j|^2
  double mean_square = 0.0;   // sum over these rounds of |mean_j g_j|^2
  std::int64_t examples = 0;  // trained since the previous sample, in all rounds
};

struct NoiseScaleEstimate {
  // B_noise in examples. None if fewer than eight effective samples were seen, or if |G|^2 is not above zero by two
  // standard errors: the efficiency of a mini-batch is then unknown.
  std::optional<double> scale{};
  double error = 0.0;    // relative standard error of `scale`
  double least = 0.0;    // B_noise is likely larger than this; 0 if nothing can be said
  double noise = 0.0;    // S
  double signal = 0.0;   // |G|^2; may be negative
  double samples = 0.0;  // effective number of samples in the averages: (sum of weights)^2 / sum of their squares
};

class NoiseScale {
 public:
  // A sample's weight in the averages falls by a factor e per `memory_examples` examples. Throws std::invalid_argument
  // unless that number is positive and finite.
  explicit NoiseScale(double memory_examples);

  // Throws std::invalid_argument for a sample that no gradients can produce: fewer than two gradients, an empty
  // mini-batch, no round, |mean_j g_j|^2 above mean_j |g_j|^2. A sample that is infinite or NaN is dropped and counted;
  // whether the run has diverged is decided elsewhere.
  void add(const GradientSample& sample);

  NoiseScaleEstimate estimate() const;
  std::int64_t dropped_samples() const noexcept { return dropped_; }

 private:
  // Weighted sums over samples with weights a. Names ending in 2 sum with squared weights, for standard errors.
  struct Sums {
    double weight = 0.0;   // a
    double weight2 = 0.0;  // a^2
    double noise = 0.0;    // a S
    double signal = 0.0;   // a |G|^2
    double signal2 = 0.0;  // a^2 |G|^2
    double noise_noise2 = 0.0;
    double noise_signal2 = 0.0;
    double signal_signal2 = 0.0;

    void decay(double factor);
    void add(double weight, double noise, double signal);
    NoiseScaleEstimate estimate() const;
  };
  // The averages of one source, and their age.
  struct Averages {
    Sums sums;
    double age = 0.0;  // examples since the last sample
  };

  double memory_examples_;
  Averages learners_;
  Averages successive_;
  double successive_factor_ = 1.0;  // factor by which successive gradients overestimate the scale, as far as known
  std::int64_t dropped_ = 0;
};

}  // namespace arbalest::autotuner
