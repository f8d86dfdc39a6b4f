// Running statistics in a learner's step.
#include <algorithm>

#include "engine/passes/weight_update.h"
#include "tests/engine/update_vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

// Vectors with two ranges of running statistics. The optimizer's rule applies to the other range.
Vectors with_statistics(const UpdateRule& rule, unsigned steps) {
  Vectors vectors = with_steps(rule, steps);
  vectors.ranges = {{0, 500, 2.0F, 3.0F}, {500, 700, 1.0F, 1.0F, 0.25F}, {700, kElements, 1.0F, 1.0F, 1.0F}};
  return vectors;
}

TEST_CASE("running statistics move towards the mini-batch's, and ignore the rest of the step") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), averaged, threads);
    Vectors vectors = with_statistics(rule, 3);
    vectors.gradient_scale = 0.5F;
    Vectors trained = vectors;
    trained.ranges = {vectors.ranges[0]};
    Expected expected = reference_steps(trained, averaged);
    for (const Floats& batch : vectors.gradients) {
      for (std::size_t i = 500; i < kElements; ++i) {
        expected.weights[i] += (i < 700 ? 0.25 : 1.0) * (static_cast<double>(batch[i]) - expected.weights[i]);
      }
    }
    // A step does not use the optimizer's vectors beyond the start of the statistics.
    vectors.state.assign(engine::state_slots(rule).size(), Floats(kElements, 0.0F));
    for (Floats& slot : vectors.state) std::fill(slot.begin() + 500, slot.end(), 7.0F);
    vectors.run(averaged, threads);
    CHECK(relative_error(vectors.weights, expected.weights) < 2e-6);
    for (const Floats& slot : vectors.state) {
      CHECK(std::ranges::all_of(slot.begin() + 500, slot.end(), [](float value) { return value == 7.0F; }));
    }
    CHECK(vectors.rounded == rounded_bits(vectors.weights));
    CHECK(vectors.non_finite == 0);
  }
}

TEST_CASE("a mini-batch with a non-finite statistic is refused, or counted if there is averaging") {
  const float bad = GENERATE(kNaN, kInfinity);
  Vectors vectors = with_statistics(Sgd{.momentum = 0.9F}, 1);
  vectors.gradients[0][600] = bad;
  const Floats before = vectors.weights;
  Vectors averaged = vectors;
  vectors.run(false);
  CHECK(vectors.weights == before);
  CHECK(vectors.non_finite == 1);
  averaged.run(true);
  CHECK(averaged.non_finite == 1);
}

// Moves the mini-batch's statistics to a separate vector. Both vectors have NaN in the ranges that must not be read.
Vectors with_own_statistics(Vectors vectors) {
  for (Floats& gradient : vectors.gradients) {
    Floats statistics(kElements, kNaN);
    std::copy(gradient.begin() + 500, gradient.end(), statistics.begin() + 500);
    std::fill(gradient.begin() + 500, gradient.end(), kNaN);
    vectors.statistics.push_back(statistics);
  }
  return vectors;
}

TEST_CASE("a separate vector of statistics is read in the ranges of statistics only") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), averaged, threads);
    Vectors together = with_statistics(rule, 3);
    Vectors apart = with_own_statistics(together);
    together.run(averaged, threads);
    apart.run(averaged, threads);
    CHECK(apart.weights == together.weights);
    CHECK(apart.state == together.state);
    CHECK(apart.rounded == together.rounded);
    CHECK(apart.non_finite == 0);
  }
}

TEST_CASE("a non-finite statistic in a separate vector is refused, or counted if there is averaging") {
  Vectors vectors = with_own_statistics(with_statistics(Sgd{.momentum = 0.9F}, 1));
  vectors.statistics[0][600] = kNaN;
  const Floats before = vectors.weights;
  Vectors averaged = vectors;
  vectors.run(false);
  CHECK(vectors.weights == before);
  CHECK(vectors.non_finite == 1);
  averaged.run(true);
  CHECK(averaged.non_finite == 1);
}

}  // namespace
}  // namespace arbalest::tests
