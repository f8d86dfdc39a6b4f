#include "engine/passes/weight_update.h"

#include <algorithm>
#include <cmath>

#include "tests/engine/update_vectors.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

TEST_CASE("steps follow the formulas of their rule, with the multipliers of each range") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), averaged, threads);
    Vectors vectors = with_steps(rule, 5);
    vectors.step.reference = static_cast<std::uint32_t>(threads) % 2;
    if (averaged) vectors.gradient_scale = 0.5F;
    const Expected expected = reference_steps(vectors, averaged);
    vectors.run(averaged, threads);
    CHECK(relative_error(vectors.weights, expected.weights) < 2e-6);
    for (std::size_t slot = 0; slot < vectors.state.size(); ++slot) {
      CHECK(relative_error(vectors.state[slot], expected.state[slot]) < 2e-6);
    }
    CHECK(vectors.non_finite == 0);
  }
}

TEST_CASE("AdamW's first step equals the learning rate for any gradient") {
  for (const float length : {1e-3F, 1.0F, 1e3F}) {
    Vectors vectors = with_steps(AdamW{.weight_decay = 0.0F}, 1);
    vectors.ranges = {{0, kElements, 1.0F, 1.0F}};
    for (float& g : vectors.gradients[0]) g = g < 0.0F ? -length : length;
    const Vectors before = vectors;
    vectors.run(false);
    for (std::size_t i = 0; i < kElements; ++i) {
      const float moved = before.weights[i] - vectors.weights[i];
      if (std::abs(moved - std::copysign(0.05F, before.gradients[0][i])) > 1e-5F)
        FAIL("element " << i << ": " << moved);
    }
  }
}

TEST_CASE("a step gives the same bits for any number of threads") {
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data());
    Vectors one = with_steps(rule, 2);
    Vectors three = one;
    one.run(true, 1);
    three.run(true, 3);
    CHECK(one.weights == three.weights);
    CHECK(one.state == three.state);
  }
}

TEST_CASE("a step also writes the new weights in low precision if requested") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  for (const UpdateRule& rule : rules()) {
    Vectors vectors = with_steps(rule, 1);
    Vectors without = vectors;
    without.wants_rounded = false;
    without.run(averaged, threads);
    CHECK(without.rounded == std::vector<std::uint16_t>(kElements, 0x4141));
    vectors.run(averaged, threads);
    CHECK(vectors.weights == without.weights);
    CHECK(vectors.rounded == rounded_bits(vectors.weights));
  }
}

TEST_CASE("elements outside the ranges do not change") {
  for (const UpdateRule& rule : rules()) {
    Vectors vectors = with_steps(rule, 1);
    vectors.ranges = {{600, 900, 1.0F, 1.0F}, {10, 20, 1.0F, 1.0F}};
    const Vectors before = vectors;
    vectors.run(true, 3);
    for (std::size_t i = 0; i < kElements; ++i) {
      const bool inside = (i >= 600 && i < 900) || (i >= 10 && i < 20);
      if ((vectors.weights[i] != before.weights[i]) != inside) FAIL("element " << i);
      if ((vectors.rounded[i] != before.rounded[i]) != inside) FAIL("element " << i << " in low precision");
    }
  }
}

TEST_CASE("a step over fewer elements than threads") {
  const bool averaged = GENERATE(false, true);
  Vectors vectors;
  vectors.ranges = {{0, 1, 1.0F, 1.0F}};
  const Expected expected = reference_steps(vectors, averaged);
  vectors.run(averaged, 3);
  CHECK(relative_error(vectors.weights, expected.weights) < 1e-6);
}

TEST_CASE("pull = 0 is a local step: the references are not read") {
  for (const UpdateRule& rule : rules()) {
    Vectors vectors = with_steps(rule, 2);
    vectors.step.pull = 0.0F;
    for (Floats& reference : vectors.references) reference.assign(kElements, kNaN);
    const Expected expected = reference_steps(vectors, false);
    vectors.run(true);
    CHECK(relative_error(vectors.weights, expected.weights) < 2e-6);
    CHECK(vectors.non_finite == 0);
  }
}

TEST_CASE("without averaging a non-finite or extremely large gradient is refused as a whole") {
  const float bad = GENERATE(as<float>{}, kNaN, kInfinity, -kInfinity, 1e20F, -1e20F);
  const int threads = GENERATE(1, 3);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), bad);
    Vectors vectors = with_steps(rule, 2);
    Vectors before = vectors;
    before.gradients.pop_back();
    before.run(false, threads);
    for (const std::size_t i : {std::size_t{0}, std::size_t{640}, static_cast<std::size_t>(kElements - 1)}) {
      vectors.gradients[1][i] = bad;
    }
    vectors.run(false, threads);
    CHECK(vectors.weights == before.weights);
    CHECK(vectors.state == before.state);
    CHECK(vectors.rounded == before.rounded);
    CHECK(vectors.non_finite == 3);
  }
}

TEST_CASE("the limit applies to the gradient times learning rate and clipping scale") {
  Vectors vectors;
  vectors.gradients[0][3] = 1e19F;  // times 0.05: below 1e18
  vectors.run(false);
  CHECK(vectors.non_finite == 0);
  vectors.step.learning_rate = 0.5F;
  vectors.run(false);
  CHECK(vectors.non_finite == 1);
  vectors.gradient_scale = 0.1F;
  vectors.run(false);
  CHECK(vectors.non_finite == 0);
  vectors.gradient_scale = kNaN;  // from a gradient whose norm is not finite
  vectors.run(false);
  CHECK(vectors.non_finite == kElements);
}

TEST_CASE("with averaging, weights that become non-finite are counted") {
  const float pull = GENERATE(0.0F, 0.25F);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), pull);
    Vectors vectors = with_steps(rule, 1);
    vectors.step.pull = pull;
    vectors.gradients[0][5] = kNaN;
    vectors.gradients[0][900] = -kInfinity;
    vectors.run(true);
    CHECK(vectors.non_finite == 2);
    CHECK(std::isnan(vectors.weights[5]));
    CHECK_FALSE(std::isfinite(vectors.weights[900]));
  }
}

TEST_CASE("with averaging, overflows of squares are counted even if the weights stay finite") {
  for (const UpdateRule& rule : {rules()[3], rules()[4], rules()[5]}) {
    CAPTURE(rule.index());
    Vectors vectors = with_steps(rule, 1);
    vectors.gradients[0][5] = 1e25F;
    vectors.run(true);
    CHECK(std::isfinite(vectors.weights[5]));
    CHECK(vectors.non_finite == 1);
  }
}

TEST_CASE("each rule has only the state vectors that it needs") {
  const auto slots = [](const UpdateRule& rule) {
    const auto names = engine::state_slots(rule);
    return std::vector<std::string_view>(names.begin(), names.end());
  };
  using Names = std::vector<std::string_view>;
  CHECK(slots(Sgd{}) == Names{});
  CHECK(slots(Sgd{.momentum = 0.5F}) == Names{"momentum"});
  CHECK(slots(RmsProp{}) == Names{"square_average"});
  CHECK(slots(RmsProp{.momentum = 0.5F}) == Names{"square_average", "momentum"});
  CHECK(slots(AdamW{}) == Names{"first_moment", "second_moment"});
  CHECK(slots(Adagrad{}) == Names{"square_sum"});
}

}  // namespace
}  // namespace arbalest::tests
