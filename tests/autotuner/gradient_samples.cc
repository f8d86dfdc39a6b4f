#include "tests/autotuner/gradient_samples.h"

#include <cmath>

namespace arbalest::tests {

namespace {

// Returns the sum of squares of `degrees` normal numbers with mean 0 and standard deviation 1.
double chi_square(int degrees, std::mt19937_64& random) {
  return std::gamma_distribution<double>(0.5 * degrees, 2.0)(random);
}

}  // namespace

autotuner::GradientSample draw_sample(const GradientModel& model, int learners, double mini_batch, int rounds,
                                      std::mt19937_64& random) {
  const double variance = model.noise / (model.dimensions * mini_batch);  // in each direction of a learner's gradient
  autotuner::GradientSample sample{.gradients = learners, .mini_batch = mini_batch, .rounds = rounds};
  std::normal_distribution<double> normal;
  for (int round = 0; round < rounds; ++round) {
    const double along = std::sqrt(model.signal) + std::sqrt(variance / learners) * normal(random);
    const double across = variance / learners * chi_square(model.dimensions - 1, random);
    const double big = along * along + across;
    const double spread = variance * chi_square(model.dimensions * (learners - 1), random) / learners;
    sample.mean_square += big;
    sample.square_mean += big + spread;
  }
  return sample;
}

}  // namespace arbalest::tests
