#include "engine/ops/weight_update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/elementwise/bfloat16.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_update.h"

namespace arbalest::tests {
namespace {

using engine::AdamW;
using engine::Buffer;
using engine::RmsProp;
using engine::Sgd;
using engine::StepParameters;
using engine::UpdateRange;
using engine::UpdateRule;
using engine::WeightUpdate;

constexpr std::int64_t kElements = 1003;  // not a multiple of any vector
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<UpdateRule>& rules() {
  static const std::vector<UpdateRule> kRules = {Sgd{.momentum = 0.9F, .weight_decay = 0.01F},
                                                 Sgd{.weight_decay = 0.01F},
                                                 Sgd{.momentum = 0.9F, .nesterov = true, .weight_decay = 0.01F},
                                                 RmsProp{.smoothing = 0.9F, .epsilon = 1e-3F, .weight_decay = 0.01F},
                                                 RmsProp{.momentum = 0.5F, .weight_decay = 0.01F},
                                                 AdamW{.beta1 = 0.8F, .beta2 = 0.99F, .weight_decay = 0.1F}};
  return kRules;
}

Floats random_floats(std::int64_t count, unsigned seed) {
  Floats floats;
  for (const double value : random_values(count, seed)) floats.push_back(static_cast<float>(value));
  return floats;
}

// A learner's vectors on the host, and the gradients of its steps.
struct Vectors {
  UpdateRule rule = Sgd{.momentum = 0.9F, .weight_decay = 0.01F};
  Floats weights = random_floats(kElements, 1);
  std::vector<Floats> state;
  std::vector<Floats> gradients = {random_floats(kElements, 3)};  // by step
  Floats central[2] = {random_floats(kElements, 4), random_floats(kElements, 5)};
  std::vector<UpdateRange> ranges = {{0, 500, 1.0F, 1.0F}, {500, 700, 2.0F, 0.0F}, {700, kElements, 0.5F, 3.0F}};
  StepParameters step = {.learning_rate = 0.05F, .alpha = 0.25F, .parity = 1};
  std::optional<float> gradient_scale;
  std::int32_t non_finite = -1;
  std::vector<std::uint16_t> rounded = std::vector<std::uint16_t>(kElements, 0x4141);  // bits
  bool wants_rounded = true;

  // All steps on a stream of `threads` threads.
  void run(bool averaged, int threads = 1) {
    const auto device = open_test_device();
    const auto stream = device->create_stream({"test", threads});
    const Buffer weights_there = upload(*device, weights);
    const Buffer central_there[2] = {upload(*device, central[0]), upload(*device, central[1])};
    const Buffer scale_there = upload(*device, std::vector{gradient_scale.value_or(kNaN)});
    const Buffer count_there = upload(*device, std::vector{non_finite});
    const Buffer rounded_there = upload(*device, rounded);
    state.resize(engine::state_slots(rule).size(), Floats(kElements, 0.0F));
    std::vector<Buffer> state_there;
    for (const Floats& slot : state) state_there.push_back(upload(*device, slot));
    for (std::size_t s = 0; s < gradients.size(); ++s) {
      std::ranges::copy(engine::moment_corrections(rule, s + 1), step.moment_corrections);
      const Buffer step_there = upload(*device, std::vector{step});
      const Buffer gradient_there = upload(*device, gradients[s]);
      WeightUpdate task;
      task.weights = weights_there.as<float>();
      if (wants_rounded) task.rounded = rounded_there.as<engine::BFloat16>();
      for (std::size_t slot = 0; slot < state.size(); ++slot) task.state[slot] = state_there[slot].as<float>();
      task.gradient = gradient_there.as<float>();
      if (averaged) {
        task.central[0] = central_there[0].as<float>();
        task.central[1] = central_there[1].as<float>();
      }
      task.ranges = ranges;
      task.rule = rule;
      if (gradient_scale) task.gradient_scale = scale_there.as<float>();
      task.step = step_there.as<StepParameters>();
      task.non_finite = count_there.as<std::int32_t>();
      stream->enqueue(task, "update");
      stream->record().synchronize();
    }
    weights = download<float>(*device, weights_there.data(), weights.size());
    for (std::size_t slot = 0; slot < state.size(); ++slot) {
      state[slot] = download<float>(*device, state_there[slot].data(), kElements);
    }
    rounded = download<std::uint16_t>(*device, rounded_there.data(), rounded.size());
    non_finite = download<std::int32_t>(*device, count_there.data(), 1)[0];
  }
};

std::vector<std::uint16_t> rounded_bits(const Floats& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(engine::elementwise::to_bfloat16(value).bits);
  return bits;
}

// The formulas, one element at a time. Elements outside of the ranges stay as they are.
struct Expected {
  Values weights;
  Values state[2];
};
Expected reference_steps(const Vectors& of, bool averaged) {
  Expected expected{Values(of.weights.begin(), of.weights.end()), {}};
  ReferenceUpdate update(of.rule, kElements);
  for (const Floats& gradient : of.gradients) {
    update.begin_step();
    for (const UpdateRange& range : of.ranges) {
      const double rate = static_cast<double>(of.step.learning_rate) * range.learning_rate_multiplier;
      for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i) {
        const double w = expected.weights[i];
        const double c = averaged ? of.step.alpha * (w - of.central[of.step.parity][i]) : 0.0;
        const double g = static_cast<double>(of.gradient_scale.value_or(1.0F)) * gradient[i];
        expected.weights[i] += update.move(i, w, g, rate, range.decay_multiplier) - c;
      }
    }
  }
  expected.state[0] = update.first();
  expected.state[1] = update.second();
  return expected;
}

Vectors with_steps(const UpdateRule& rule, unsigned steps) {
  Vectors vectors;
  vectors.rule = rule;
  vectors.gradients.clear();
  for (unsigned s = 0; s < steps; ++s) vectors.gradients.push_back(random_floats(kElements, 10 + s));
  return vectors;
}

TEST_CASE("steps follow the formulas of their rule, with multipliers of each range") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), averaged, threads);
    Vectors vectors = with_steps(rule, 5);
    vectors.step.parity = static_cast<std::uint32_t>(threads) % 2;
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

// Of running statistics; elsewhere the rule's steps.
Vectors with_statistics(const UpdateRule& rule, unsigned steps) {
  Vectors vectors = with_steps(rule, steps);
  vectors.ranges = {{0, 500, 2.0F, 3.0F}, {500, 700, 1.0F, 1.0F, 0.25F}, {700, kElements, 1.0F, 1.0F, 1.0F}};
  return vectors;
}

TEST_CASE("running statistics move towards the mini-batch's, and know nothing else of the step") {
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
    // The optimizer's vectors may end where the statistics begin.
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

TEST_CASE("a mini-batch whose statistic is not finite is refused, or counted where there is averaging") {
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

TEST_CASE("AdamW's first step is the rate, whatever the gradient's length") {
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

TEST_CASE("a step leaves the new weights in low precision, too, where that is wanted") {
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

TEST_CASE("elements outside the ranges stay as they are") {
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

TEST_CASE("alpha = 0 is a local step: the central model is not read") {
  for (const UpdateRule& rule : rules()) {
    Vectors vectors = with_steps(rule, 2);
    vectors.step.alpha = 0.0F;
    for (Floats& central : vectors.central) central.assign(kElements, kNaN);
    const Expected expected = reference_steps(vectors, false);
    vectors.run(true);
    CHECK(relative_error(vectors.weights, expected.weights) < 2e-6);
    CHECK(vectors.non_finite == 0);
  }
}

TEST_CASE("without averaging a gradient that is not finite, or absurdly large, is refused as a whole") {
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

TEST_CASE("the learning rate and the scale of clipping count in what is refused") {
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
  vectors.gradient_scale = kNaN;  // of a gradient that has no norm
  vectors.run(false);
  CHECK(vectors.non_finite == kElements);
}

TEST_CASE("with averaging, weights left non-finite are counted") {
  const float alpha = GENERATE(0.0F, 0.25F);
  for (const UpdateRule& rule : rules()) {
    CAPTURE(&rule - rules().data(), alpha);
    Vectors vectors = with_steps(rule, 1);
    vectors.step.alpha = alpha;
    vectors.gradients[0][5] = kNaN;
    vectors.gradients[0][900] = -kInfinity;
    vectors.run(true);
    CHECK(vectors.non_finite == 2);
    CHECK(std::isnan(vectors.weights[5]));
    CHECK_FALSE(std::isfinite(vectors.weights[900]));
  }
}

TEST_CASE("with averaging, squares that overflow are counted, though their weights stay finite") {
  for (const UpdateRule& rule : {rules()[3], rules()[4], rules()[5]}) {
    CAPTURE(rule.index());
    Vectors vectors = with_steps(rule, 1);
    vectors.gradients[0][5] = 1e25F;
    vectors.run(true);
    CHECK(std::isfinite(vectors.weights[5]));
    CHECK(vectors.non_finite == 1);
  }
}

TEST_CASE("rules keep the vectors that they need") {
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
}

}  // namespace
}  // namespace arbalest::tests
